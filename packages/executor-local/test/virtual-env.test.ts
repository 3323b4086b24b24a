import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { BackendUnavailableError, FunctionSetupError, FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import { createVirtualEnv, LocalCommandLineCodeExecutor, type LocalExecutorOptions } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { hostCommand } from "./support/host-command.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

function executorWith(options: LocalExecutorOptions): LocalCommandLineCodeExecutor {
  const executor = new LocalCommandLineCodeExecutor(options);
  onTestFinished(async () => executor.stop());
  return executor;
}

/** A wheel of a package with one module, made by Python alone, so that no package index is needed. */
async function makeWheel(directory: string, name: string, version: string): Promise<string> {
  const file = path.join(directory, `${name}-${version}-py3-none-any.whl`);
  const program = `
import sys, zipfile
file, name, version = sys.argv[1:]
info = f"{name}-{version}.dist-info"
entries = {
    f"{name}.py": f"version = {version!r}\\n",
    f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
record = "".join(f"{entry},,\\n" for entry in [*entries, f"{info}/RECORD"])
with zipfile.ZipFile(file, "w") as wheel:
    for entry, text in {**entries, f"{info}/RECORD": record}.items():
        wheel.writestr(entry, text)
`;
  await promisify(execFile)("python3", ["-c", program, file, name, version]);
  return file;
}

const where = { language: "python", code: "import sys; print(sys.prefix)" };

describe("virtual environments", needs("python3"), () => {
  let virtualEnv = "";
  let wheels: string[] = [];

  beforeAll(async () => {
    const top = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-test-"));
    wheels = await Promise.all([makeWheel(top, "fenced_one", "1.0"), makeWheel(top, "fenced_two", "2.0")]);
    virtualEnv = await createVirtualEnv(path.join(top, "with space"), { packages: wheels.slice(0, 1) });
    return async () => rm(top, { recursive: true });
  }, 120_000);

  it("run blocks, including shell blocks", async () => {
    const result = await executorWith({ virtualEnv }).executeCodeBlocks([
      where,
      { language: "sh", code: 'echo "$VIRTUAL_ENV"; python -c "import sys; print(sys.prefix)"' },
    ]);
    expect(result.stdout).toBe(`${virtualEnv}\n`.repeat(3));
  });

  it("come before a PATH that the user gives", async () => {
    const given = process.env["PATH"] ?? "";
    const blocks = [{ language: "sh", code: 'echo "$PATH"' }];
    const executor = executorWith({ virtualEnv, env: { PATH: given } });
    expect((await executor.executeCodeBlocks(blocks)).stdout).toBe(`${virtualEnv}/bin:${given}\n`);
    const forCall = await executor.executeCodeBlocks(blocks, { env: { PATH: "/only" } });
    expect(forCall.stdout).toBe(`${virtualEnv}/bin:/only\n`);
  });

  it("can be created by a second attempt after the first one failed halfway", async () => {
    const top = await temporaryDirectory();
    const python = path.join(top, "half");
    const half = '[ "$3" = venv ] || exit 1; mkdir -p "$4/bin"; touch "$4/pyvenv.cfg" "$4/bin/python"; exit 1';
    await writeFile(python, `#!/bin/sh\n${half}\n`, { mode: 0o755 });
    const directory = path.join(top, "env");
    await expect(createVirtualEnv(directory, { python })).rejects.toThrow(BackendUnavailableError);
    await createVirtualEnv(directory);
    expect((await executorWith({ virtualEnv: directory }).executeCodeBlocks([where])).stdout).toBe(`${directory}\n`);
  });

  it("can be given by a relative path", async () => {
    const relative = path.relative(process.cwd(), virtualEnv);
    expect((await executorWith({ virtualEnv: relative }).executeCodeBlocks([where])).stdout).toBe(`${virtualEnv}\n`);
  });

  it("get packages when they are created, and later if they are trusted", async () => {
    const later = { packages: wheels.slice(1) };
    await expect(createVirtualEnv(virtualEnv, later)).rejects.toThrow(/exists, .*fenced_two.*`trustExisting: true`/);
    expect(await createVirtualEnv(virtualEnv, { ...later, trustExisting: true })).toBe(virtualEnv);
    expect(await createVirtualEnv(virtualEnv, { packages: wheels })).toBe(virtualEnv);
    const code = "import fenced_one, fenced_two; print(fenced_one.version, fenced_two.version)";
    const result = await executorWith({ virtualEnv }).executeCodeBlocks([{ language: "python", code }]);
    expect(result.output).toBe("1.0 2.0\n");
  });

  it("run nothing that code has left in them, in their working directory, or where they are created", async () => {
    const top = await temporaryDirectory();
    const mark = path.join(top, "escaped");
    const escape = `import os; open(${JSON.stringify(mark)}, "w").close()\n`;
    const workDir = path.join(top, "work");
    const inside = path.join(workDir, "env");
    const python = path.join(top, "python");
    await writeFile(python, '#!/bin/sh\nexec python3 "$@" --without-pip\n', { mode: 0o755 });
    await promisify(execFile)("python3", ["-m", "venv", "--without-pip", inside]);
    const libraries = path.join(inside, "lib");
    const [version = ""] = await readdir(libraries);
    await writeFile(path.join(libraries, version, "site-packages/left.pth"), escape);
    await writeFile(path.join(workDir, "venv.py"), escape);
    await mkdir(path.join(workDir, "half/lib", version, "site-packages"), { recursive: true });
    await writeFile(path.join(workDir, "half/lib", version, "site-packages/left.pth"), escape);
    const program = await hostCommand("makes-virtual-envs.ts");
    const { stdout } = await promisify(execFile)(program[0], [...program.slice(1), python], { cwd: workDir });
    expect(JSON.parse(stdout)).toEqual({
      env: expect.stringContaining("set `trustExisting: true`"),
      half: expect.stringContaining("exists and is not a virtual environment"),
      new: "made",
    });
    expect(await readdir(top)).toEqual(["python", "work"]);
  });

  it("report what is wrong with a package", async () => {
    const made = createVirtualEnv(virtualEnv, { packages: ["./no-such-wheel.whl"], trustExisting: true });
    await expect(made).rejects.toThrow(/pip failed: .*no-such-wheel.*Correct the requirement/s);
  });

  it("get only those packages of functions that are missing", async () => {
    const source = "def f(): return fenced_one.version";
    const withPackage = (requirement: string) => [
      FunctionWithRequirements.fromString(source, { pythonPackages: [requirement], globalImports: ["fenced_one"] }),
    ];
    const block = { language: "python", code: "from functions import f; print(f())" };
    const env = { PIP_NO_INDEX: "1" };
    for (const there of ["fenced_one", "fenced-one>=1,<2"]) {
      const executor = executorWith({ virtualEnv, env, functions: withPackage(there) });
      expect((await executor.executeCodeBlocks([block])).output).toBe("1.0\n");
    }
    const executor = executorWith({ virtualEnv, env, functions: withPackage("fenced_one>=4") });
    await expect(executor.executeCodeBlocks([block])).rejects.toThrow(/fenced_one>=4/);
  });

  it("keep a package that was installed for a function", async () => {
    const top = await temporaryDirectory();
    const requirements = {
      pythonPackages: [await makeWheel(top, "fenced_four", "4.0")],
      globalImports: ["fenced_four"],
    };
    const functions = [FunctionWithRequirements.fromString("def f(): return fenced_four.version", requirements)];
    await executorWith({ virtualEnv, functions }).executeCodeBlocks([where]);
    const later = { language: "python", code: "import fenced_four; print(fenced_four.version)" };
    expect((await executorWith({ virtualEnv }).executeCodeBlocks([later])).output).toBe("4.0\n");
  });

  it("are rejected if the directory contains none", async () => {
    const empty = await temporaryDirectory();
    expect(() => new LocalCommandLineCodeExecutor({ virtualEnv: empty })).toThrow(InvalidInputError);
  });
});

describe("virtual environments made by uv", needs("uv"), () => {
  it("run blocks", async () => {
    const directory = path.join(await temporaryDirectory(), "env");
    await promisify(execFile)("uv", ["venv", directory]);
    expect((await executorWith({ virtualEnv: directory }).executeCodeBlocks([where])).stdout).toBe(`${directory}\n`);
  });
});

describe("virtual environments without pip, like those of uv", needs("python3"), () => {
  it("run blocks, and report that packages cannot be installed", async () => {
    const top = await temporaryDirectory();
    const directory = path.join(top, "env");
    await promisify(execFile)("python3", ["-m", "venv", "--without-pip", directory]);
    expect((await executorWith({ virtualEnv: directory }).executeCodeBlocks([where])).stdout).toBe(`${directory}\n`);
    const functions = [
      FunctionWithRequirements.fromString("def f(): pass", {
        pythonPackages: [await makeWheel(top, "fenced_x", "1.0")],
      }),
    ];
    const executor = executorWith({ virtualEnv: directory, functions, env: { PATH: path.join(directory, "bin") } });
    await expect(executor.executeCodeBlocks([where])).rejects.toThrow(/neither pip nor uv/);
  });
});

describe("packages of functions", needs("python3", "node"), () => {
  const version = FunctionWithRequirements.fromString("def f(): return fenced_three.version");
  const block = { language: "python", code: "from functions import f; print(f())" };

  it("are installed in the session, not in the host's Python", async () => {
    const wheel = await makeWheel(await temporaryDirectory(), "fenced_three", "3.0");
    const requirements = { pythonPackages: [wheel], globalImports: ["fenced_three"] };
    const functions = [FunctionWithRequirements.fromString(version.source, requirements)];
    const executor = executorWith({ functions });
    expect((await executor.executeCodeBlocks([block])).output).toBe("3.0\n");
    await executor.restart();
    expect((await executor.executeCodeBlocks([block])).output).toBe("3.0\n");
    const other = await executorWith({}).executeCodeBlocks([{ language: "python", code: "import fenced_three" }]);
    expect(other.output).toContain("ModuleNotFoundError");
  });

  it("from npm are installed next to the functions, and the user's node_modules stay", async () => {
    const top = await temporaryDirectory();
    const dependency = path.join(top, "fenced-dependency");
    await mkdir(dependency);
    await writeFile(
      path.join(dependency, "package.json"),
      '{"name":"fenced-dependency","version":"1.0.0","main":"x.js"}',
    );
    await writeFile(path.join(dependency, "x.js"), "exports.value = 5;");
    const workDir = path.join(top, "work");
    await mkdir(path.join(workDir, "node_modules/mine"), { recursive: true });
    await writeFile(path.join(workDir, "node_modules/mine/index.js"), "module.exports = 6;");
    const functions = [
      FunctionWithRequirements.fromJSON({
        language: "javascript",
        source: "async function value() { return (await import('fenced-dependency')).value; }",
        requirements: { npmPackages: [dependency] },
      }),
    ];
    const executor = executorWith({ workDir, functions });
    const code = "import { value } from 'functions'; import mine from 'mine'; console.log(await value(), mine)";
    expect((await executor.executeCodeBlocks([{ language: "javascript", code }])).output).toBe("5 6\n");
    expect(await executor.files.list()).toEqual([{ path: "node_modules/mine/index.js", size: 19 }]);
    await executor.stop();
    expect(await readdir(path.join(workDir, "node_modules"))).toEqual(["mine"]);
  });

  it("load even if their imports print text without a newline", async () => {
    const functions = [FunctionWithRequirements.fromString("def f(): return 7", { globalImports: ["noisy"] })];
    const executor = executorWith({ functions });
    await executor.files.write("noisy.py", "print('hello', end='')");
    const code = "from functions import f; print(f())";
    expect(await executor.executeCodeBlocks([{ language: "python", code }])).toMatchObject({ stdout: "hello7\n" });
  });

  it("do not replace the user's own package", async () => {
    const workDir = await temporaryDirectory();
    const own = path.join(workDir, "node_modules/functions");
    await mkdir(own, { recursive: true });
    await writeFile(path.join(own, "index.js"), "");
    const source = "function one() { return 1; }";
    const functions = [FunctionWithRequirements.fromJSON({ language: "javascript", source, requirements: {} })];
    const executor = executorWith({ workDir, functions });
    await expect(executor.executeCodeBlocks([where])).rejects.toThrow(FunctionSetupError);
    await executor.stop();
    expect(await readdir(own)).toEqual(["index.js"]);
  });
});
