import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { FunctionWithRequirements } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const double = FunctionWithRequirements.fromString("def double(number):\n    return number * 2\n");

describe("a session", needs("python3"), () => {
  it("has the given identifier, and a new one after restart()", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ sessionId: "my-own-session" });
    expect(executor.sessionId).toBe("my-own-session");
    await run(executor, "kept = 1");
    expect(executor.sessionId).toBe("my-own-session");
    await executor.restart();
    expect(executor.sessionId).not.toBe("my-own-session");
    expect(setting.emulator.sessions()).toEqual([executor.sessionId]);
    expect((await run(executor, "kept")).exitCode).toBe(1);
  });

  it("is deleted by stop(), unless keepSession is set", async () => {
    await using setting = await Setting.open();
    const [ended, kept] = [setting.executor(), setting.executor({ sessionId: "kept-session", keepSession: true })];
    await run(kept, "value = 41");
    await ended.start();
    await Promise.all([ended.stop(), kept.stop()]);
    expect(setting.emulator.sessions()).toEqual(["kept-session"]);
    expect((await run(setting.executor({ sessionId: "kept-session" }), "print(value + 1)")).output).toBe("42\n");
  });

  it("that expired between two calls is replaced, with the functions, and the result reports it", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ functions: [double] });
    await run(executor, "value = 1");
    setting.emulator.provoke({ kind: "expired-session", on: "executions", times: 1 });
    const result = await run(executor, "from functions import double\nprint(double(21), 'value' in globals())");
    expect(result).toMatchObject({ exitCode: 0, output: "42 False\n", stateLost: true });
    expect((await run(executor, "print(double(1))")).stateLost).toBe(false);
  });

  it("that was silently replaced by the service is noticed, too", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ functions: [double], sessionId: "same-name" });
    await run(executor, "value = 1");
    const query = new URLSearchParams({ "api-version": "2025-10-02-preview", identifier: "same-name" });
    const headers = { authorization: `Bearer ${setting.emulator.token()}` };
    await fetch(`${setting.emulator.endpoint}/session?${query.toString()}`, { method: "DELETE", headers });
    const result = await run(executor, "from functions import double\nprint(double(21))");
    expect(result).toMatchObject({ exitCode: 0, output: "42\n", stateLost: true });
  });

  it("carries its files over when a block times out, even in a pool of one", async () => {
    await using setting = await Setting.open({ maxSessions: 1 });
    const executor = setting.executor({ functions: [double] });
    await executor.files.write("dir/given.txt", "given");
    const code = "print('so far', flush=True)\nimport time\nwhile True: time.sleep(0.1)";
    const result = await run(executor, code, { timeoutMs: 6000 });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, stateLost: true, output: "so far\n" });
    expect(await executor.getFileList()).toEqual(["dir/given.txt"]);
    expect((await run(executor, "from functions import double\nprint(double(4))")).output).toBe("8\n");
  });

  it("defines the functions as globals, until a block reassigns their names", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ functions: [double], functionsModule: "tools" });
    expect((await run(executor, "print(double(21))")).output).toBe("42\n");
    await run(executor, "double = 'mine'");
    expect((await run(executor, "print(double)\nfrom tools import double\nprint(double(2))")).output).toBe("mine\n4\n");
    setting.emulator.provoke({ kind: "expired-session", on: "executions", times: 1 });
    expect(await run(executor, "print(double(4))")).toMatchObject({ output: "8\n", stateLost: true });
  });

  it("that was lost in an aborted call is reported by the next result", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await run(executor, "value = 1");
    const signal = AbortSignal.timeout(4000);
    await expect(run(executor, "while True: pass", { signal })).rejects.toSatisfy((error) => error === signal.reason);
    expect(await run(executor, "print('value' in globals())")).toMatchObject({ output: "False\n", stateLost: true });
    expect((await run(executor, "1")).stateLost).toBe(false);
  });

  it("runs blocks of more than 220 seconds asynchronously", async () => {
    await using setting = await Setting.open();
    // Synchronous executions would fail: the emulator refuses them beyond its limit.
    const result = await run(setting.executor(), "import time; time.sleep(1); print('waited')", { timeoutMs: 300_000 });
    expect(result).toMatchObject({ exitCode: 0, output: "waited\n" });
    const endless = await run(setting.executor(), "print('no limit')", { timeoutMs: Infinity });
    expect(endless.output).toBe("no limit\n");
  });

  it("sends wrapped bodies to a pool that requires them", async () => {
    await using setting = await Setting.open({ wrappedBodies: true });
    const executor = setting.executor();
    expect((await run(executor, "print(1)")).output).toBe("1\n");
    expect((await run(executor, "print(2)")).output).toBe("2\n");
  });

  it("lists files over many pages", async () => {
    await using setting = await Setting.open({ pageSize: 3 });
    const executor = setting.executor();
    await run(executor, "for name in range(10): open(f'{name}.txt', 'w').close()");
    expect(await executor.getFileList()).toHaveLength(10);
  });
});

describe("output", needs("python3"), () => {
  it("is complete and in order, although the service cuts it", async () => {
    await using setting = await Setting.open({ outputLimit: 100 });
    const code = "import sys\nfor line in range(3000):\n    print(line, file=sys.stderr if line % 2 else sys.stdout)";
    const result = await run(setting.executor(), code);
    expect(result.truncated).toBe(false);
    expect(result.output).toBe(Array.from({ length: 3000 }, (_, line) => `${line}\n`).join(""));
  });

  it("of child processes is cut at the limit, and the result says so", async () => {
    await using setting = await Setting.open();
    const code = "import subprocess\nsubprocess.run(['sh', '-c', 'yes | head -c 3000000']) and None";
    const executor = setting.executor({ maxOutputBytes: 1000 });
    const result = await run(executor, code);
    expect(result.truncated).toBe(true);
    expect(result.output.length).toBeLessThan(2000);
  });

  it.for<[what: string, code: string, truncated: boolean]>([
    ["of a child alone", "import subprocess; subprocess.run('seq 400000', shell=True) and None", true],
    [
      "of a child after the block's own",
      "import subprocess; print(1); subprocess.run('seq 400000', shell=True); 1",
      true,
    ],
    [
      "of a child, cut within a character",
      "import subprocess; subprocess.run(['sh', '-c', 'printf x; yes é | head -c 3000000']) and None",
      true,
    ],
    ["of the block itself", "for _ in range(30000): print('x' * 99)", false],
    ["of the block itself, with a traceback", "for _ in range(30000): print('x' * 99)\n1 / 0", false],
  ])("of more than a megabyte is complete or marked as truncated: %s", async ([, code, truncated]) => {
    await using setting = await Setting.open();
    const result = await run(setting.executor({ maxOutputBytes: 8_000_000 }), code);
    expect(result.truncated).toBe(truncated);
    expect(result.stdout.length > 2_000_000).toBe(!truncated);
  });

  it("ends with the last expression's value, unless suppressResultOutput is set", async () => {
    await using setting = await Setting.open();
    const code = "print('text', end='')\n{'a': [1, 2.5, None]}";
    expect((await run(setting.executor(), code)).output).toBe("text\n{'a': [1, 2.5, None]}\n");
    expect((await run(setting.executor({ suppressResultOutput: true }), code)).output).toBe("text");
  });

  it("contains the traceback with the block's own lines, with exit code 1", async () => {
    await using setting = await Setting.open();
    const result = await run(setting.executor(), "from __future__ import annotations\nvalue = 1\nvalue.missing");
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/line 3.*value\.missing.*AttributeError/s);
  });

  it("comes with the exit code of sys.exit()", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    expect((await run(executor, "import sys; sys.exit(3)")).exitCode).toBe(3);
    expect((await run(executor, "sys.exit()")).exitCode).toBe(0);
  });

  it("includes pictures as displays and files", async () => {
    await using setting = await Setting.open();
    const directory = await mkdtemp(join(tmpdir(), "fenced-aca-test-"));
    try {
      const code = "class Plot:\n    def _repr_png_(self): return b'png bytes'\nPlot()";
      const result = await run(setting.executor({ outputDir: directory }), code);
      const [file = ""] = result.displays[0]?.files ?? [];
      expect(dirname(file)).toBe(directory);
      expect(await readFile(file, "utf8")).toBe("png bytes");
      expect(result.displays[0]?.data["image/png"]).toEqual(new Uint8Array(Buffer.from("png bytes")));
      expect(result.output).toBe("[PNG image]\n");
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
