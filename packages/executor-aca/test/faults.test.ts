import type { Fault } from "@fenced/aca-emulator";
import { BackendUnavailableError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const note = `with open("ran.txt", "a") as file: file.write("x")`;

/** Starts an executor, provokes a fault for the calls that run a block, and returns how often the block ran. */
async function runUnder(
  fault: Fault,
): Promise<{ exitCode: number; stateLost: boolean; ran: string; durationMs: number }> {
  await using setting = await Setting.open();
  const executor = setting.executor();
  await executor.start();
  setting.emulator.provoke(fault);
  const { exitCode, stateLost, durationMs } = await run(executor, note);
  const ran = new TextDecoder().decode(await executor.files.read("ran.txt"));
  return { exitCode, stateLost, ran, durationMs };
}

const ranOnce = { exitCode: 0, stateLost: false, ran: "x" };

describe("a block under one fault", needs("python3"), () => {
  // A block takes two calls: the first prepares the session. `times: 2` also hits the second one, or the first one's retry.
  for (const times of [1, 2, 3]) {
    const faults: readonly Fault[] = [
      { kind: "too-many-requests", retryAfterMs: 0 },
      { kind: "too-many-requests" },
      { kind: "server-error" },
      { kind: "server-error", afterwards: true },
      { kind: "server-error", status: 502 },
      { kind: "server-error", status: 503 },
      { kind: "server-error", status: 504, afterwards: true },
      { kind: "drop" },
      { kind: "drop", afterwards: true },
    ];
    it.for(faults)(`runs once: $kind, ${times} times (%o)`, async (fault) => {
      expect(await runUnder({ ...fault, on: "executions", times })).toMatchObject(ranOnce);
    });
  }

  it("runs once with latency", async () => {
    const result = await runUnder({ kind: "latency", milliseconds: 300, on: "executions" });
    expect(result).toMatchObject(ranOnce);
    expect(result.durationMs).toBeGreaterThanOrEqual(300);
  });

  it("waits as long as Retry-After says", async () => {
    const result = await runUnder({ kind: "too-many-requests", retryAfterMs: 2000, on: "executions", times: 1 });
    expect(result).toMatchObject(ranOnce);
    expect(result.durationMs).toBeGreaterThanOrEqual(2000);
  });

  it("runs once when a token expires in transit", async () => {
    expect(await runUnder({ kind: "expired-token", on: "executions", times: 1 })).toMatchObject(ranOnce);
  });

  it("runs once in a fresh session when its own has expired, and reports it", async () => {
    const result = await runUnder({ kind: "expired-session", on: "executions", times: 1 });
    expect(result).toMatchObject({ exitCode: 0, stateLost: true, ran: "x" });
  });

  it("gets its answer even if polling for it fails, too", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "drop", afterwards: true, on: "executions", times: 2 });
    setting.emulator.provoke({ kind: "server-error", on: "poll", times: 3 });
    expect(await run(executor, "print('one answer')")).toMatchObject({ output: "one answer\n" });
  });

  it("rejects and is not sent again when it is unknown whether it ran", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ retryForMs: 500 });
    await executor.start();
    await run(executor, note);
    // The first call prepares the session, the second is the block's own.
    setting.emulator.setFaults([
      { kind: "drop", afterwards: true, on: "executions", skip: 1 },
      { kind: "server-error", on: "poll" },
    ]);
    await expect(run(executor, note)).rejects.toSatisfy(
      (error) => BackendUnavailableError.isInstance(error) && /may or may not have run/.test(error.message),
    );
    setting.emulator.setFaults([]);
    expect(new TextDecoder().decode(await executor.files.read("ran.txt"))).toBe("xx");
  });
});

describe("a block that the service has accepted", needs("python3"), () => {
  it("is not run again when its session expires while it is polled", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "expired-session", on: "poll", times: 1 });
    // Such a long limit makes it asynchronous: it is accepted at once, and then polled.
    const block = run(executor, `${note}\nimport time; time.sleep(1)`, { timeoutMs: 300_000 });
    await expect(block).rejects.toSatisfy(
      (error) => BackendUnavailableError.isInstance(error) && /may or may not have run/.test(error.message),
    );
    const next = await run(executor, "import os; print(os.path.exists('ran.txt'))");
    expect(next).toMatchObject({ output: "False\n", stateLost: true });
  });
});

describe("files under faults", needs("python3"), () => {
  it.for<Fault>([
    { kind: "server-error" },
    { kind: "server-error", afterwards: true },
    { kind: "drop" },
    { kind: "drop", afterwards: true },
    { kind: "too-many-requests", retryAfterMs: 0 },
  ])("are written, listed, read and removed (%o)", async (fault) => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    const provoke = () => setting.emulator.provoke({ ...fault, on: "files", times: 1 });
    provoke();
    await executor.files.write("a/b.txt", "content");
    provoke();
    expect(await executor.files.list()).toEqual([{ path: "a/b.txt", size: 7 }]);
    provoke();
    expect(new TextDecoder().decode(await executor.files.read("a/b.txt"))).toBe("content");
    await executor.files.remove("a/b.txt");
    expect(await executor.files.list()).toEqual([]);
  });
});
