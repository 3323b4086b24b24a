import { FileNotFoundError, FunctionWithRequirements } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const double = FunctionWithRequirements.fromString("def double(number):\n    return number * 2\n");

describe("a session that expired", needs("python3"), () => {
  it("is replaced by the next file call, and the next result reports it", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ functions: [double] });
    await run(executor, "value = 1");
    await setting.expire(executor.sessionId);
    await executor.files.write("given.txt", "given");
    const code = "from functions import double\nprint(double(2), 'value' in globals(), open('given.txt').read())";
    expect(await run(executor, code)).toMatchObject({ exitCode: 0, output: "4 False given\n", stateLost: true });
    expect((await run(executor, "1")).stateLost).toBe(false);
    expect(setting.emulator.sessions()).toEqual([executor.sessionId]);
  });

  it("has no files to list, read or remove", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.files.write("given.txt", "given");
    await setting.expire(executor.sessionId);
    expect(await executor.getFileList()).toEqual([]);
    for (const call of [() => executor.files.read("given.txt"), () => executor.files.remove("given.txt")]) {
      await setting.expire(executor.sessionId);
      await expect(call()).rejects.toSatisfy(FileNotFoundError.isInstance);
    }
    expect(await run(executor, "print(1)")).toMatchObject({ output: "1\n", stateLost: true });
  });

  it.for(["2025-10-02-preview", "2024-02-02-preview"])(
    "is replaced by a block with a file name (%s)",
    async (apiVersion) => {
      await using setting = await Setting.open();
      const executor = setting.executor({ apiVersion });
      await run(executor, "value = 1");
      await setting.expire(executor.sessionId);
      const code = "# filename: named.py\nprint('value' in globals())";
      expect(await run(executor, code)).toMatchObject({ exitCode: 0, output: "False\n", stateLost: true });
      expect(await executor.getFileList()).toEqual(["named.py"]);
    },
  );

  it("just before a block runs is replaced with one that has the block's file", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "expired-session", on: "executions", times: 1 });
    const code = "# filename: named.py\nimport os; print(os.listdir('.').count('named.py'))";
    expect(await run(executor, code)).toMatchObject({ exitCode: 0, output: "1\n", stateLost: true });
  });
});

describe("a block with a file name", needs("python3"), () => {
  it("times out even while its file is being written", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "too-many-requests", on: "files" });
    const result = await run(executor, "# filename: named.py\nprint(1)", { timeoutMs: 1000 });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true });
    // The executor's own retries, for 30 seconds, would take longer than this test may.
    setting.emulator.setFaults([]);
    expect((await run(executor, "print(2)", { timeoutMs: 20_000 })).output).toBe("2\n");
  });
});

describe("a session whose interpreter died", needs("python3"), () => {
  it("keeps its identifier, its files and its slot", async () => {
    await using setting = await Setting.open({ maxSessions: 1 });
    const executor = setting.executor({ functions: [double], retryForMs: 500 });
    await run(executor, "value = 1; open('data.txt', 'w').write('data')");
    const { sessionId } = executor;
    expect((await run(executor, "import os; os._exit(3)")).exitCode).not.toBe(0);
    const code = "from functions import double\nprint(double(2), 'value' in globals(), open('data.txt').read())";
    expect(await run(executor, code)).toMatchObject({ exitCode: 0, output: "4 False data\n", stateLost: true });
    expect(executor.sessionId).toBe(sessionId);
    await executor.stop();
    expect(setting.emulator.sessions()).toEqual([]);
  });

  it("keeps its files and its slot in a NodeLTS pool, too", async () => {
    await using setting = await Setting.open({ maxSessions: 1, poolType: "NodeLTS" });
    const executor = setting.executor({ poolType: "NodeLTS", retryForMs: 500 });
    const javascript = { language: "javascript" };
    await run(executor, "const value = 1; require('fs').writeFileSync('data.txt', 'data')", javascript);
    await run(executor, "process.kill(process.pid, 'SIGKILL')", javascript);
    const code = "console.log(typeof value, require('fs').readFileSync('data.txt', 'utf8'))";
    expect(await run(executor, code, javascript)).toMatchObject({ output: "undefined data\n", stateLost: true });
    await executor.stop();
    expect(setting.emulator.sessions()).toEqual([]);
  });
});

describe("concurrent blocks in a Shell pool", needs("python3", "bash"), () => {
  it("share one new session if they all find it expired", async () => {
    await using setting = await Setting.open({ poolType: "Shell" });
    const executor = setting.executor();
    await run(executor, "true", { language: "bash" });
    await setting.expire(executor.sessionId);
    const results = await Promise.all(
      ["1", "2", "3"].map((each) => run(executor, `echo ${each}`, { language: "bash" })),
    );
    expect(results.map(({ output }) => output)).toEqual(["1\n", "2\n", "3\n"]);
    expect(results.map(({ stateLost }) => stateLost)).toEqual([true, true, true]);
    expect(setting.emulator.sessions()).toEqual([executor.sessionId]);
    await executor.stop();
    expect(setting.emulator.sessions()).toEqual([]);
  });

  it("all lose the session when one of them times out, and report it", async () => {
    await using setting = await Setting.open({ poolType: "Shell" });
    const executor = setting.executor();
    await executor.start();
    const results = await Promise.all([
      run(executor, "sleep 60", { language: "bash", timeoutMs: 1000 }),
      run(executor, "sleep 60", { language: "bash", timeoutMs: 3000 }),
    ]);
    expect(results.map(({ exitCode, stateLost }) => [exitCode === 0, stateLost])).toEqual([
      [false, true],
      [false, true],
    ]);
  });

  it("that time out together replace the session once and keep its files", async () => {
    await using setting = await Setting.open({ poolType: "Shell" });
    const executor = setting.executor();
    await executor.files.write("given.txt", "given");
    const options = { language: "bash", timeoutMs: 1000 };
    const results = await Promise.all(["1", "2", "3"].map(() => run(executor, "sleep 60", options)));
    expect(results.map(({ timedOut }) => timedOut)).toEqual([true, true, true]);
    expect(setting.emulator.sessions()).toEqual([executor.sessionId]);
    expect((await run(executor, "cat given.txt", { language: "bash" })).output).toBe("given");
    await executor.stop();
    expect(setting.emulator.sessions()).toEqual([]);
  });
});
