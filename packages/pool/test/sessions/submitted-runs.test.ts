import { ExecutorStoppedError, RunNotFoundError, QuotaExceededError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { localPool } from "../support/local-pool.ts";
import { forever, localSessions } from "../support/local-sessions.ts";
import { sh } from "../support/runs.ts";

describe("submitted runs of sessions", needs("bash"), () => {
  it("belong to their key, whichever object asks for them, and wait their turn", async () => {
    const sessions = localSessions();
    const first = await sessions.executor("ann").submit(sh("sleep 0.2; echo one >> order"), { id: "first" });
    const second = await sessions.executor("ann").submit(sh("echo two >> order; cat order"), { id: "second" });
    expect((await second.result()).output).toBe("one\ntwo\n");
    expect(first.state).toBe("finished");
    const ids = sessions
      .executor("ann")
      .runs()
      .map(({ id }) => id);
    expect(ids).toEqual(["first", "second"]);
    expect((await sessions.executor("ann").run("second").result()).output).toBe("one\ntwo\n");
    expect(sessions.executor("bob").runs()).toEqual([]);
    expect(() => sessions.executor("bob").run("first")).toThrow(RunNotFoundError);
  });

  it("keep the session in use, and end with it", async () => {
    const sessions = localSessions({ idleTimeoutMs: 50 });
    const executor = sessions.executor("ann");
    const long = await executor.submit(sh("sleep 0.5; echo lived"));
    expect((await long.result()).output).toBe("lived\n");
    const endless = await executor.submit(forever, { id: "endless" });
    await sessions.end("ann");
    await expect(endless.result()).rejects.toThrow(ExecutorStoppedError);
    expect(() => executor.run("endless")).toThrow(RunNotFoundError);
  });

  it("belong to the next session if they were submitted while one ended", async () => {
    const sessions = localSessions();
    const executor = sessions.executor("ann");
    await executor.executeCodeBlocks(sh("true"));
    const ending = sessions.end("ann");
    const run = await executor.submit(sh("echo x >> runs; cat runs"), { id: "order" });
    await ending;
    expect((await run.result()).output).toBe("x\n");
    expect(executor.run("order")).toBe(run);
    expect(await executor.submit(sh("echo x >> runs; cat runs"), { id: "order" })).toBe(run);
  });

  it("are refused at once if there is no room", async () => {
    const sessions = localSessions({ maxWaiting: 0 });
    const executor = sessions.executor("ann");
    const running = await executor.submit(forever);
    for await (const { event } of running.events()) if (event.type === "stdout") break;
    await expect(executor.submit(sh("true"))).rejects.toThrow(QuotaExceededError);
    await running.cancel();
  });
});

it("the submitted runs of a pool's lease end with it", needs("bash"), async () => {
  const pool = localPool({ max: 1 });
  const lease = await pool.acquire();
  const done = await lease.executor.submit(sh("echo done"), { id: "done" });
  expect((await done.result()).output).toBe("done\n");
  expect(lease.executor.run("done")).toBe(done);
  const endless = await lease.executor.submit(forever);
  await lease.release();
  await expect(endless.result()).rejects.toThrow(ExecutorStoppedError);
  await using next = await pool.acquire();
  expect(next.executor.runs()).toEqual([]);
});
