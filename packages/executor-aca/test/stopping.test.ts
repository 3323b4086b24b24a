import { setTimeout as sleep } from "node:timers/promises";
import { ExecutorStoppedError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const kept = { sessionId: "kept-session", keepSession: true };

describe("a session with keepSession", needs("python3"), () => {
  it("outlives an executor that could not start with it", async () => {
    await using setting = await Setting.open();
    const first = setting.executor(kept);
    await run(first, "value = 41");
    await first.stop();
    setting.emulator.provoke({ kind: "forbidden", on: "executions" });
    const refused = setting.executor(kept);
    await expect(refused.start()).rejects.toThrow(/no permission to use the session pool/);
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

describe("a kept session that is reused", needs("python3"), () => {
  it("hides the executors' own files, and keeps none of a stopped executor", async () => {
    await using setting = await Setting.open();
    const first = setting.executor(kept);
    await run(first, "open('users.txt', 'w').close(); open('.fenced-users', 'w').close()");
    const second = setting.executor(kept);
    await run(second, "print(1)");
    expect(await first.getFileList()).toEqual([".fenced-users", "users.txt"]);
    await first.stop();
    await second.stop();
    const third = setting.executor(kept);
    const printed = await run(third, "import os; print(sum(name.startswith('.fenced-') for name in os.listdir('.')))");
    // The user's, and the third executor's own.
    expect(printed.output).toBe("2\n");
  });

  it("wraps its output in one recorder, however many executors have used it", async () => {
    await using setting = await Setting.open();
    for (let executor = 0; executor < 3; executor += 1) {
      const each = setting.executor(kept);
      const code = "import sys; print(type(sys.stdout).__name__, type(sys.stdout._fenced[0]).__name__)";
      expect((await run(each, code)).output).toBe("Recorded TextIOWrapper\n");
      await each.stop();
    }
  });

  it.for([
    { poolType: "PythonLTS", language: "python", code: "import os; print(os.environ.get('FENCED_A', 'unset'))" },
    { poolType: "NodeLTS", language: "javascript", code: "console.log(process.env.FENCED_A ?? 'unset')" },
  ] as const)(
    "has no environment variables of the previous executor ($poolType)",
    async ({ poolType, language, code }) => {
      await using setting = await Setting.open({ poolType });
      const first = setting.executor({ ...kept, env: { FENCED_A: "secret" } });
      await first.start();
      expect((await run(first, code, { language })).output).toBe("secret\n");
      await first.stop();
      const second = setting.executor(kept);
      await second.start();
      expect((await run(second, code, { language })).output).toBe("unset\n");
    },
  );

  it("can be left even if the service fails", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(kept);
    await run(executor, "1");
    setting.emulator.provoke({ kind: "server-error", on: "files" });
    await expect(executor.stop()).resolves.toBeUndefined();
    expect(setting.emulator.sessions()).toEqual(["kept-session"]);
  });
});

describe("stop() during a file call", needs("python3"), () => {
  it("waits for the call, so that it does not recreate the session", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "latency", milliseconds: 1000, on: "files" });
    const writing = executor.files.write("given.txt", "given").catch((error: unknown) => error);
    await sleep(300);
    await executor.stop();
    expect(await writing).toSatisfy(ExecutorStoppedError.isInstance);
    expect(setting.emulator.sessions()).toEqual([]);
  });

  it("prevents later requests once it has waited long enough", async () => {
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

  it("ends the call's retries, and calls that wait behind it", async () => {
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
