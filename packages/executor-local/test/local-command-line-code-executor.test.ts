import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { InvalidInputError, loadComponent } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { hostCommand } from "./support/host-command.ts";
import { executorWith, run } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const exists = async (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    () => false,
  );

describe("environment", needs("bash"), () => {
  it("hides the host's own variables, unless inheritEnv names them", async () => {
    process.env["FENCED_TEST_KEY"] = "secret";
    process.env["FENCED_TEST_OTHER"] = "other";
    onTestFinished(() => {
      delete process.env["FENCED_TEST_KEY"];
      delete process.env["FENCED_TEST_OTHER"];
    });
    expect((await run({}, "bash", "env")).stdout).not.toContain("FENCED_TEST_");
    const { stdout } = await run({ inheritEnv: ["FENCED_TEST_OTHER"] }, "bash", "env");
    expect(stdout).toContain("FENCED_TEST_OTHER=other");
    expect(stdout).not.toContain("secret");
    expect(stdout).toContain(`HOME=${process.env["HOME"]}`);
  });

  it("has the option's variables, which a call can override", async () => {
    const executor = executorWith({ env: { A: "1", B: "2", PIP_QUIET: "0" } });
    const blocks = [{ language: "bash", code: "echo $A $B $PIP_QUIET" }];
    expect((await executor.executeCodeBlocks(blocks, { env: { B: "3" } })).stdout).toBe("1 3 0\n");
    expect((await executor.executeCodeBlocks(blocks)).stdout).toBe("1 2 0\n");
  });
});

describe("languages", needs("bash", "node"), () => {
  it("are those whose programs are installed", async () => {
    const executor = executorWith({ env: { PATH: path.dirname(process.execPath) } });
    expect(executor.capabilities.languages).toEqual(["python", "bash", "sh", "pwsh", "javascript", "typescript"]);
    await executor.start();
    expect(executor.capabilities.languages).toContain("javascript");
    expect(executor.capabilities.languages).not.toContain("pwsh");
    const result = await executor.executeCodeBlocks([{ language: "powershell", code: "1" }]);
    expect(result.exitCode).toBe(1);
    expect(result.output).toContain('"pwsh" cannot run here');
    expect(result.output).toContain("install PowerShell");
  });

  it("can be added and changed, and run with the user's command", async () => {
    const directory = await temporaryDirectory();
    const shout = path.join(directory, "shout");
    await writeFile(shout, '#!/bin/sh\ntr a-z A-Z < "$2"; echo "$1"\n');
    await chmod(shout, 0o755);
    const languages = {
      shout: { extension: "txt", command: [shout, "--loud"] },
      py: { extension: "txt", command: [shout, "--python"] },
    };
    const executor = executorWith({ languages });
    const result = await executor.executeCodeBlocks([
      { language: "Shout", code: "hello\n" },
      { language: "python3", code: "print(1)\n" },
    ]);
    expect(result.stdout).toBe("HELLO\n--loud\nPRINT(1)\n--python\n");
    expect(result.codeFile).toMatch(/\.txt$/);
    expect(executor.capabilities.languages).toContain("shout");
  });

  it("run JavaScript as models write it: with require, or with import and await", async () => {
    const required = await run(
      {},
      "javascript",
      "const { EOL } = require('node:os'); console.log(JSON.stringify(EOL))",
    );
    expect(required).toMatchObject({ exitCode: 0, stdout: '"\\n"\n', stderr: "" });
    const imported = await run({}, "js", "import os from 'node:os'; console.log(await Promise.resolve(typeof os.EOL))");
    expect(imported).toMatchObject({ exitCode: 0, stdout: "string\n", stderr: "" });
  });
});

describe("TypeScript", needs("typescript"), () => {
  it("runs without warnings", async () => {
    const code = "interface A { x: number }\nconst a: A = { x: 4 };\nconsole.log(a.x satisfies number);";
    expect(await run({}, "ts", code)).toMatchObject({ exitCode: 0, stdout: "4\n", stderr: "" });
  });
});

describe("work directory", needs("bash", "python3"), () => {
  it("is created and kept, and holds none of the executor's own files", async () => {
    const workDir = path.join(await temporaryDirectory(), "not/yet");
    const executor = executorWith({ workDir });
    const result = await executor.executeCodeBlocks([{ language: "bash", code: "pwd; echo x > kept; ls -A" }]);
    expect(result.stdout).toBe(`${workDir}\nkept\n`);
    const { codeFile = "" } = await executor.executeCodeBlocks([{ language: "python", code: "pass" }]);
    expect(path.dirname(codeFile)).toBe(workDir);
    expect(await readdir(workDir)).toEqual(["kept"]);
    expect(await executor.files.list()).toEqual([{ path: "kept", size: 2 }]);
    await executor.stop();
    expect(await readdir(workDir)).toEqual(["kept"]);
  });

  it("does not lose the result of a block that replaces its own file", async () => {
    const executor = executorWith();
    const result = await executor.executeCodeBlocks([{ language: "sh", code: 'rm "$0"; mkdir -p "$0/x"; echo done' }]);
    expect(result).toMatchObject({ exitCode: 0, output: "done\n" });
    expect(await exists(result.codeFile ?? "")).toBe(false);
  });

  it("lists the user's own packages, whatever their names", async () => {
    const executor = executorWith();
    await executor.files.write("node_modules/functions/index.js", "");
    expect(await executor.files.list()).toHaveLength(1);
  });

  // The superuser can always remove them.
  it("is removed even if a block has removed write permissions from directories", async () => {
    const executor = executorWith();
    const code = "mkdir -p a/b; touch a/b/c; chmod 555 a/b; chmod 0 a; chmod 555 .; pwd";
    const { stdout } = await executor.executeCodeBlocks([{ language: "sh", code }]);
    await executor.stop();
    expect(await exists(stdout.trim())).toBe(false);
  });

  it("keeps the blocks' files if cleanupTempFiles is false", async () => {
    const workDir = await temporaryDirectory();
    const executor = executorWith({ workDir, cleanupTempFiles: false });
    const { codeFile } = await executor.executeCodeBlocks([{ language: "bash", code: "true # mine" }]);
    await executor.stop();
    expect(await readFile(codeFile ?? "", "utf8")).toBe("true # mine");
  });

  it("causes a clear error if it cannot be created", async () => {
    const file = path.join(await temporaryDirectory(), "file");
    await writeFile(file, "");
    await expect(executorWith({ workDir: path.join(file, "below") }).start()).rejects.toThrow(/work directory/);
  });

  it("causes a clear error if it disappears, and is created again by stop() and start()", async () => {
    const workDir = path.join(await temporaryDirectory(), "work");
    const executor = executorWith({ workDir });
    await executor.start();
    await rm(workDir, { recursive: true });
    const blocks = [{ language: "bash", code: "true" }];
    await expect(executor.executeCodeBlocks(blocks)).rejects.toMatchObject({ code: "backend_unavailable" });
    await executor.stop();
    await executor.start();
    expect(await executor.executeCodeBlocks(blocks)).toMatchObject({ exitCode: 0 });
  });

  it("stays, but causes a clear error if the session's own directory disappears", async () => {
    const workDir = await temporaryDirectory();
    const top = await temporaryDirectory();
    const before = process.env["TMPDIR"];
    process.env["TMPDIR"] = top;
    onTestFinished(() => {
      if (before === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = before;
    });
    const executor = executorWith({ workDir });
    await executor.executeCodeBlocks([{ language: "sh", code: `rm -r ${top}/*` }]);
    const call = executor.executeCodeBlocks([{ language: "sh", code: "cat" }], { stdin: "text" });
    await expect(call).rejects.toMatchObject({ code: "backend_unavailable" });
  });

  it("serves two executors at once", async () => {
    const workDir = await temporaryDirectory();
    const [one, other] = [executorWith({ workDir }), executorWith({ workDir })];
    await Promise.all([one.start(), other.start()]);
    await one.executeCodeBlocks([{ language: "python", code: "# filename: shared.py\nx = 7" }]);
    await one.stop();
    const result = await other.executeCodeBlocks([{ language: "python", code: "import shared; print(shared.x)" }]);
    expect(result.stdout).toBe("7\n");
  });
});

describe("a program that dies without stopping", needs("bash"), () => {
  it("leaves none of the executor's own files in the user's work directory", async () => {
    const workDir = await temporaryDirectory();
    await mkdir(path.join(workDir, "node_modules/functions"), { recursive: true });
    await writeFile(path.join(workDir, "node_modules/functions/index.js"), "the user's own");
    const [program, ...words] = await hostCommand("dies-in-a-block.ts");
    const died = await promisify(execFile)(program, [...words, workDir]).catch((error: unknown) => error);
    expect(died).toMatchObject({ signal: "SIGKILL" });
    const left = async (): Promise<string[]> => (await readdir(workDir)).toSorted();
    await expect.poll(left, { timeout: 60_000 }).toEqual(["node_modules"]);
    expect(await exists(path.join(workDir, "node_modules/functions/index.js"))).toBe(true);
  });
});

describe("a program without a free descriptor", needs("bash"), () => {
  it("still ends the processes that it started", async () => {
    const words = ["-c", 'ulimit -n 200; exec "$@"', "sh", ...(await hostCommand("runs-out-of-descriptors.ts"))];
    expect((await promisify(execFile)("sh", words)).stdout).toBe("dead\n");
  });
});

describe("the warning", () => {
  it("is printed once per process, with its code", async () => {
    const [program, ...words] = await hostCommand("makes-two.ts");
    const { stderr } = await promisify(execFile)(program, words);
    expect(stderr.match(/\[FENCED_LOCAL\]/g)).toHaveLength(1);
    expect(stderr).toContain("unsandboxed");
  });
});

describe("options", () => {
  it("that are invalid are rejected", () => {
    expect(() => new LocalCommandLineCodeExecutor({ virtualEnv: "/no/such/place" })).toThrow(InvalidInputError);
    expect(() => new LocalCommandLineCodeExecutor({ languages: { x: { extension: "a/b", command: ["x"] } } })).toThrow(
      InvalidInputError,
    );
  });

  it.each([
    [{ gateway: "none", timeoutMs: 1 }, /unknown option "gateway"\. The options are timeoutMs, .*, workDir/],
    [{ timeout: 60, timeoutMs: 1 }, /unknown option "timeout"\. Did you mean "timeoutMs", in milliseconds\?/],
    [{ workDir: "" }, /"workDir" is empty\. It must not be empty/],
  ])("that are unknown or empty are rejected: %j", (options, message) => {
    expect(() => new LocalCommandLineCodeExecutor(options)).toThrow(InvalidInputError);
    expect(() => new LocalCommandLineCodeExecutor(options)).toThrow(message);
  });

  it("are the same after being dumped and loaded", async () => {
    const options = { workDir: "coding", timeoutMs: 5, env: { A: "1" }, inheritEnv: ["B"], cleanupTempFiles: false };
    const model = new LocalCommandLineCodeExecutor(options).dumpComponent();
    expect(model.config).toEqual(options);
    const importModule = async () => ({ LocalCommandLineCodeExecutor });
    const loaded = await loadComponent<LocalCommandLineCodeExecutor>(model, { importModule });
    expect(loaded.dumpComponent()).toEqual(model);
    const misspelt = { ...model, config: { workdir: "typing error" } };
    await expect(loadComponent(misspelt, { importModule })).rejects.toThrow(/workdir/);
  });
});
