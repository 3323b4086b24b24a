import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { startRedis } from "@fenced/test-support/databases";
import { describe, expect, it } from "vitest";
import { localSessions } from "../support/local-sessions.ts";
import { Replica } from "../support/replica.ts";
import { eventually, sh } from "../support/runs.ts";

const image = "fenced-test:python";
const leaseMs = "3000";

async function isThere(container: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)("docker", ["ps", "--all", "--quiet", "--filter", `name=${container}`]);
  return stdout.trim() !== "";
}

describe("sessions in containers with `keepAliveMs`", { ...needs("redis", "docker"), timeout: 120_000 }, () => {
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

it("refuses to leave sessions that end with their process", needs("bash"), async () => {
  const sessions = localSessions({ create: () => new LocalCommandLineCodeExecutor(), onDrain: "detach" });
  await expect(sessions.run("ann", sh("true"))).rejects.toThrow(
    "needs executors whose `capabilities.keepAlive` is true",
  );
});
