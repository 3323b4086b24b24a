import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { BackendUnavailableError, ExecutorStoppedError, type SessionHandle } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { startRedis } from "@fenced/test-support/databases";
import { describe, expect, it } from "vitest";
import { memoryDirectory } from "../../src/index.ts";
import { directoryAround } from "../support/directory-around.ts";
import { connectToLeft, leftSessions } from "../support/left-places.ts";
import { localSessions } from "../support/local-sessions.ts";
import { Replica } from "../support/replica.ts";
import { eventually, failure, later, sh } from "../support/runs.ts";

const image = "fenced-test:python";
const leaseMs = "8000";

async function isThere(container: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)("docker", ["ps", "--all", "--quiet", "--filter", `name=${container}`]);
  return stdout.trim() !== "";
}

describe("sessions in containers with `keepAliveMs`", { ...needs("redis", "docker"), timeout: 240_000 }, () => {
  it("are left to the next process with everything in them, however theirs ended", async () => {
    await using server = await startRedis();
    const start = () => Replica.start(server.url, "", leaseMs, image);
    await using one = await start();
    await using other = await start();
    const { output: container = "" } = await one.run("ann", "hostname; echo 1 > /tmp/outside");
    // Handed over, since nothing runs there.
    const moved = await other.run("ann", "hostname; cat /tmp/outside; echo 2 > /tmp/outside");
    expect(moved).toMatchObject({ output: `${container}1\n`, stateLost: false });
    // Killed: the next one gets it when the lease has ended.
    other.signal("SIGKILL");
    const found = await one.run("ann", "hostname; cat /tmp/outside; echo 3 > /tmp/outside");
    expect(found).toMatchObject({ output: `${container}2\n`, stateLost: false });
    // Stopped, and back too late: what it was running has been ended, and it ends nothing itself.
    await using third = await start();
    const late = one.run("ann", "sleep 600; echo late > /tmp/outside");
    await one.run("bob", "true");
    one.signal("SIGSTOP");
    const taken = await third.run("ann", "hostname; cat /tmp/outside");
    expect(taken).toMatchObject({ output: `${container}3\n`, stateLost: false });
    one.signal("SIGCONT");
    expect((await late).failed?.code).toBe("executor_stopped");
    await eventually(() => expect(one.lines).toContainEqual(expect.objectContaining({ lost: "ann" })));
    expect((await third.run("ann", "cat /tmp/outside")).output).toBe("3\n");
    // Shut down, and ended by a process that never had it.
    await third.drain();
    expect(await isThere(container.trim())).toBe(true);
    await using last = await start();
    for (const key of ["ann", "bob"]) expect(await last.run(key, "end")).toMatchObject({ output: "ended" });
    expect(await isThere(container.trim())).toBe(false);
  });
});

describe("submitted runs of sessions that are left to the next process", () => {
  it("go on when their process is killed", { ...needs("redis", "docker"), timeout: 240_000 }, async () => {
    await using server = await startRedis();
    const start = () => Replica.start(server.url, "", leaseMs, image);
    await using one = await start();
    await using other = await start();
    const code = "echo . >> /tmp/runs; sleep 1; wc -l < /tmp/runs";
    expect(await one.submit("ann", "order-42", code)).toMatchObject({ output: "submitted" });
    one.signal("SIGKILL");
    expect(await other.submit("ann", "order-42", code)).toMatchObject({ output: "submitted" });
    expect(await other.result("ann", "order-42")).toMatchObject({ output: "1\n" });
    expect((await other.result("ann", "order-43")).failed?.code).toBe("run_not_found");
    expect(await other.run("ann", "end")).toMatchObject({ output: "ended" });
  });

  it.each([
    { onDrain: "detach", keepsRuns: true },
    { onDrain: "end", keepsRuns: false },
  ] as const)("are promised only with detach: %o", needs("python3", "bash"), async ({ onDrain, keepsRuns }) => {
    await using sessions = leftSessions({ onDrain });
    const executor = sessions.executor("ann");
    await executor.start();
    expect(executor.capabilities).toMatchObject({ keepAlive: true, keepsRuns });
    await executor.stop();
  });

  it("move with their session, and keep it in use", needs("python3", "bash"), async () => {
    const directory = memoryDirectory();
    const [one, other] = [leftSessions({ directory, idleTimeoutMs: 2000 }), leftSessions({ directory })];
    const ann = one.executor("ann");
    expect(() => ann.run("order-42")).toThrow(/Call start\(\) first/);
    const blocks = sh("sleep 3; echo slept");
    const run = await ann.submit(blocks, { id: "order-42" });
    expect(ann.run("order-42")).toBe(run);
    expect(await ann.submit(blocks, { id: "order-42" })).toBe(run);
    // Idle for long enough to be ended, if no run were in progress.
    expect((await run.result()).output).toBe("slept\n");
    const second = await ann.submit(sh("until [ -e go ]; do sleep 0.05; done; echo moved"), { id: "order-43" });
    const there = other.executor("ann");
    await there.start();
    await expect(second.result()).rejects.toMatchObject({ code: "executor_stopped" });
    await there.files.write("go", "");
    expect((await there.run("order-43").result()).output).toBe("moved\n");
    expect(there.runs().map(({ id, uuid }) => [id, uuid])).toEqual([
      ["order-42", run.uuid],
      ["order-43", second.uuid],
    ]);
    await other.end("ann");
    await Promise.all([one.drain(), other.drain()]);
  });
});

describe("sessions in places of this machine with `keepAliveMs`", needs("python3", "bash"), () => {
  it("have lost nothing when they begin, and say so when their place is gone", async () => {
    const directory = memoryDirectory();
    const losses: string[] = [];
    const onSessionLost = (_key: string, reason: string): void => void losses.push(reason);
    const one = leftSessions({ directory, onSessionLost });
    expect((await one.run("ann", sh("echo hers > note"))).stateLost).toBe(false);
    await one.drain();
    const gone = new BackendUnavailableError("its machine was lost", { remedy: "Begin anew." });
    const other = leftSessions({ directory, onSessionLost, connect: () => Promise.reject(gone) });
    expect(losses).toEqual([]);
    expect((await other.run("ann", sh("ls"))).stateLost).toBe(true);
    expect(losses).toEqual(["The place where the session was is gone. Its state is gone."]);
    await other.end("ann");
  });

  it("go on when the next process is shut down while it connects", async () => {
    const directory = memoryDirectory();
    const [one, last] = [leftSessions({ directory }), leftSessions({ directory })];
    await one.run("ann", sh("echo hers > note"));
    await one.drain();
    const [asked, go] = [later<true>(), later<true>()];
    const other = leftSessions({
      directory,
      async connect(_key, handle) {
        asked.give(true);
        await go.promise;
        return connectToLeft(handle);
      },
    });
    const run = failure(other.run("ann", sh("true")));
    await asked.promise;
    const drained = other.drain({ graceMs: 0 });
    go.give(true);
    await drained;
    expect(await run).toBeInstanceOf(ExecutorStoppedError);
    expect(await last.run("ann", sh("cat note"))).toMatchObject({ output: "hers\n", stateLost: false });
    await last.end("ann");
  });

  it("stay as they are if they cannot be ended, and can be used and ended later", async () => {
    const directory = memoryDirectory();
    const mistake = new Error("a mistake of the callback");
    const one = leftSessions({ directory });
    await one.run("ann", sh("echo hers > note"));
    await one.drain();
    const failing = leftSessions({ directory, connect: () => Promise.reject(mistake), handoverTimeoutMs: 500 });
    for (const _ of [1, 2]) expect(await failure(failing.end("ann"))).toBe(mistake);
    const hanging = leftSessions({ directory, connect: () => new Promise(() => {}), startTimeoutMs: 50 });
    await expect(hanging.end("ann")).rejects.toThrow("was not reached within 50 ms");
    const last = leftSessions({ directory });
    expect(await last.run("ann", sh("cat note"))).toMatchObject({ output: "hers\n", stateLost: false });
    await last.end("ann");
  });

  it("are taken back from a process that has connected without the directory's word", async () => {
    const handles: SessionHandle[] = [];
    const directory = memoryDirectory();
    const noting = directoryAround(directory, {
      update(hold, note) {
        if (note.handle) handles.push(note.handle);
        return directory.update(hold, note);
      },
    });
    const sessions = leftSessions({ directory: noting });
    await sessions.run("ann", sh("echo hers > note"));
    const [handle] = handles;
    if (!handle) throw new Error("The directory was not told");
    const late = await connectToLeft(handle);
    await eventually(async () =>
      expect(await sessions.run("ann", sh("cat note"))).toMatchObject({ output: "hers\n", stateLost: false }),
    );
    await expect(late.executeCodeBlocks(sh("true"))).rejects.toThrow(ExecutorStoppedError);
    await sessions.end("ann");
    await late.stop();
  });
});

it("refuses to leave sessions that end with their process", needs("bash"), async () => {
  const sessions = localSessions({ create: () => new LocalCommandLineCodeExecutor(), onDrain: "detach" });
  await expect(sessions.run("ann", sh("true"))).rejects.toThrow(
    "needs executors whose `capabilities.keepAlive` is true",
  );
});
