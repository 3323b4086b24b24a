import { setTimeout as sleep } from "node:timers/promises";
import { ExecutorStoppedError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const kept = { sessionId: "kept-session", keepSession: true };

describe("a session that is to be kept", needs("python3"), () => {
  it("outlives an executor that could not start with it", async () => {
    await using setting = await Setting.open();
    const first = setting.executor(kept);
    await run(first, "value = 41");
    await first.stop();
    setting.emulator.provoke({ kind: "forbidden", on: "executions" });
    const refused = setting.executor(kept);
    await expect(refused.start()).rejects.toThrow(/may not use the session pool/);
    setting.emulator.setFaults([]);
    expect((await run(setting.executor(kept), "print(value + 1)")).output).toBe("42\n");
  });

  it("outlives an executor that is stopped while it starts", async () => {
    await using setting = await Setting.open();
    const first = setting.executor(kept);
    await run(first, "value = 41");
    await first.stop();
    setting.emulator.provoke({ kind: "latency", milliseconds: 1000, on: "executions" });
    const stopped = setting.executor(kept);
    const starting = stopped.start().catch((error: unknown) => error);
    await expect.poll(() => stopped.sessionId).toBe("kept-session");
    await stopped.stop();
    expect(await starting).toSatisfy(ExecutorStoppedError.isInstance);
    setting.emulator.setFaults([]);
    expect((await run(setting.executor(kept), "print(value + 1)")).output).toBe("42\n");
  });
});

describe("stop() during a file call", needs("python3"), () => {
  it("waits for what is under way, so that it does not make the session anew", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "latency", milliseconds: 1000, on: "files" });
    const writing = executor.files.write("given.txt", "given");
    await sleep(300);
    await executor.stop();
    await writing;
    expect(setting.emulator.sessions()).toEqual([]);
  });

  it("sends nothing any more once it has waited for long enough", async () => {
    await using setting = await Setting.open();
    let slow: Promise<void> | undefined;
    const getToken = async () => {
      const waitsFor = slow;
      slow = undefined;
      await waitsFor;
      return { token: setting.emulator.token() };
    };
    const executor = setting.executor({ credential: { getToken } });
    await executor.start();
    let goOn: () => void = () => {};
    slow = new Promise((resolve) => {
      goOn = resolve;
    });
    const writing = executor.files.write("given.txt", "given").catch((error: unknown) => error);
    await expect.poll(() => slow === undefined).toBe(true);
    await executor.stop();
    goOn();
    expect(await writing).toSatisfy(ExecutorStoppedError.isInstance);
    expect(setting.emulator.sessions()).toEqual([]);
  });

  it("ends its repetitions, and the calls that would follow", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "server-error", on: "files" });
    const calls = [executor.files.write("given.txt", "given"), executor.files.list()];
    const errors = Promise.all(calls.map((call) => call.then(String, (error: unknown) => error)));
    await sleep(300);
    await executor.stop();
    for (const error of await errors) expect(error).toSatisfy(ExecutorStoppedError.isInstance);
    expect(setting.emulator.sessions()).toEqual([]);
  });
});
