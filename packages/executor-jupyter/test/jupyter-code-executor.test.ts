import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ComponentError, FunctionWithRequirements, InvalidInputError, loadComponent } from "@fenced/core";
import { listProcesses } from "@fenced/executor-kit";
import { MemoryWatch } from "@fenced/executor-testkit";
import { jupyterPythons, needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DockerJupyterServer, JupyterCodeExecutor, LocalJupyterServer } from "../src/index.ts";
import { anyVersion, sharedServer } from "./support/local-server.ts";
import { PlainServer } from "./support/plain-server.ts";
import { bash, python } from "./support/python.ts";

const patience = { timeout: 120_000 };

describe.each(anyVersion)("cells (%s)", (version) => {
  describe("of a Python kernel", needs(version), () => {
    const { executor: create, shared } = sharedServer(version);

    it("answer input() line by line, and then with EOFError", patience, async () => {
      const executor = shared();
      const code = "a = input('first? '); b = input()\nprint(a, b)\ninput()";
      const result = await executor.executeCodeBlocks([python(code)], { stdin: "1\r\n2" });
      expect(result.stdout).toBe("first? 1 2\n");
      expect(result.stderr).toMatch(/EOFError/);
    });

    it("run event loops of their own, although the kernel runs cells in one", patience, async () => {
      await using executor = create({ interruptGraceMs: 30_000 });
      const code = `import asyncio
async def main(n):
    await asyncio.sleep(0.01)
    return n
print(asyncio.run(main(1)), asyncio.get_event_loop().run_until_complete(main(2)))
loop = asyncio.new_event_loop()
print(loop.run_until_complete(main(3)))
loop.close()
async def nested():
    try: asyncio.run(main(0))
    except RuntimeError as error: return str(error)
import warnings; warnings.simplefilter("ignore")
print(asyncio.run(nested()))
print(await main(4), asyncio.current_task() is not None)`;
      const { output } = await executor.executeCodeBlocks([python(code)]);
      expect(output).toMatch(/^1 2\n3\n.*cannot be called from a running event loop\n4 True\n$/);
      const endless = "import asyncio\nasync def wait():\n    await asyncio.sleep(100)\nasyncio.run(wait())";
      expect(await executor.executeCodeBlocks([python(endless)], { timeoutMs: 1000 })).toMatchObject({
        timedOut: true,
        stateLost: false,
      });
      expect((await executor.executeCodeBlocks([python("print(asyncio.run(main(5)))")])).output).toBe("5\n");
    });

    it("import what they have just installed, and leave no empty directory for that", patience, async () => {
      const [before, home] = [process.env["HOME"], await mkdtemp(path.join(tmpdir(), "fenced-test-"))];
      process.env["HOME"] = home;
      try {
        await using server = new LocalJupyterServer({ python: jupyterPythons[version] });
        await using executor = new JupyterCodeExecutor({ server });
        const look = `import os, site, sys
place = site.getusersitepackages()
# A virtual environment has packages of its own.
print(not site.ENABLE_USER_SITE or place in sys.path and place.startswith(${JSON.stringify(home)}))`;
        expect((await executor.executeCodeBlocks([python(look)])).output).toBe("True\n");
        await executor.stop();
        expect(await readdir(home)).not.toContain(".local");
      } finally {
        process.env["HOME"] = before;
        await rm(home, { recursive: true });
      }
    });

    it("return the exit code of sys.exit()", patience, async () => {
      const executor = shared();
      const exit = async (argument: string) =>
        executor.executeCodeBlocks([python(`import sys; sys.exit(${argument})`)]);
      expect(await exit("")).toMatchObject({ exitCode: 0, output: "" });
      expect(await exit("0")).toMatchObject({ exitCode: 0, output: "" });
      expect((await exit("7")).exitCode).toBe(7);
      const failed = await exit("'words'");
      expect(failed.exitCode).toBe(1);
      expect(failed.output).toMatch(/words/);
    });

    it(
      "are counted, so that frames of different calls differ and earlier results and history are available",
      patience,
      async () => {
        await using executor = create();
        const first = await executor.executeCodeBlocks([python("def f(): 1 / 0"), python("6 * 7")]);
        expect(first.output).toBe("42\n");
        await executor.executeCodeBlocks([bash("true")]);
        const failed = await executor.executeCodeBlocks([python("f()")]);
        const frames = [...failed.stderr.matchAll(/(?:Cell In ?|<ipython-input-)\[?(\d+)[\]-]/g)].map(
          ([, number]) => number,
        );
        expect(frames).toEqual(["3", "1"]);
        const asked = await executor.executeCodeBlocks([python("%history -n 1-3"), python("print(_2)")]);
        expect(asked.output).toBe("   1: def f(): 1 / 0\n   2: 6 * 7\n   3: f()\n42\n");
      },
    );

    it("in bash and sh separate their streams, return exit codes and read stdin", patience, async () => {
      const executor = shared();
      const result = await executor.executeCodeBlocks([bash("read a; echo $a; echo err >&2; exit 7")], {
        stdin: "in\n",
      });
      expect(result).toMatchObject({ exitCode: 7, stdout: "in\n", stderr: "err\n" });
      const killed = await executor.executeCodeBlocks([{ language: "sh", code: "kill -9 $$" }]);
      expect(killed.exitCode).toBe(137);
      const outer = await executor.executeCodeBlocks([
        python("import os; os.environ['X'] = 'of the kernel'"),
        bash("echo $X"),
      ]);
      expect(outer.output).toBe("of the kernel\n");
    });

    it("have functions as variables, and in shells, too", patience, async () => {
      const double = FunctionWithRequirements.fromString("def double(x):\n    return x * 2");
      await using executor = create({ functions: [double] });
      const result = await executor.executeCodeBlocks([
        python("print(double(21))"),
        bash("python3 -c 'from functions import double; print(double(4))'"),
      ]);
      expect(result.output).toBe("42\n8\n");
    });

    it("are counted from the user's first one, not from the set-up of functions", patience, async () => {
      const double = FunctionWithRequirements.fromString("def double(x):\n    return x * 2");
      await using executor = create({ functions: [double] });
      const failed = await executor.executeCodeBlocks([python("double(None) + 1 / 0")]);
      expect(failed.stderr).toMatch(/(?:Cell In ?\[1\]|<ipython-input-1-)/);
      const asked = await executor.executeCodeBlocks([python("%history -n"), python("double(4)"), python("print(_3)")]);
      expect(asked.output).toBe("   1: double(None) + 1 / 0\n   2: %history -n\n8\n8\n");
    });

    it("do not see any names of this package", patience, async () => {
      await using executor = create();
      const code = "print([name for name in globals() if 'fenced' in name])";
      expect((await executor.executeCodeBlocks([python(code)])).output).toBe("[]\n");
    });

    it("cannot see the server's token", patience, async () => {
      const server = new LocalJupyterServer({ python: jupyterPythons[version] });
      await using executor = new JupyterCodeExecutor({ server });
      await executor.start();
      const { address, release } = await server.acquire();
      const token = (address.headers["Authorization"] ?? "").replace("token ", "");
      expect(token).toMatch(/^[0-9a-f]{64}$/);
      const seen = await executor.executeCodeBlocks([
        bash("ps -eo args; cat /proc/[0-9]*/environ 2> /dev/null | tr '\\0' '\\n'"),
      ]);
      expect(seen.output.length).toBeGreaterThan(1000);
      expect(seen.output).not.toContain(token);
      const files = await executor.executeCodeBlocks([
        bash("grep -rlF TOKEN $(dirname $JUPYTER_RUNTIME_DIR) || echo none".replace("TOKEN", token.slice(0, 60))),
      ]);
      expect(files.output).toMatch(/none\n$|block-\w+\.sh\n$/);
      await release();
    });

    it(
      "may print a hundred megabytes with bounded memory, and lose only what the cut names",
      { timeout: 300_000 },
      async () => {
        await using executor = create({ maxOutputBytes: 1_000_000 });
        await executor.executeCodeBlocks([python("1")]);
        using memory = new MemoryWatch();
        const code = `line = "x" * 999 + "\\n"\nfor i in range(100_000): print(line, end="")\nprint("the end")`;
        const result = await executor.executeCodeBlocks([python(code)], { timeoutMs: 250_000 });
        expect(result).toMatchObject({ exitCode: 0, truncated: true });
        expect(result.output).toMatch(/^x{999}\n[^]*\nthe end\n$/);
        const cut = Number(/\[\.\.\. (\d+) bytes of output left out \.\.\.\]/.exec(result.output)?.[1]);
        expect(cut + result.output.replace(/\n\[\.\.\. \d+ bytes of output left out \.\.\.\]\n/, "").length).toBe(
          100_000_008,
        );
        expect(memory.peak() / 2 ** 20).toBeLessThan(64);
      },
    );

    it("lose no rich output while the server is busy", patience, async () => {
      const executor = shared();
      const code = `import os, signal, time
from IPython.display import display
os.kill(os.getppid(), signal.SIGSTOP)
for n in range(8000): display({"application/x": "x" * 1000}, raw=True)
time.sleep(0.5)
os.kill(os.getppid(), signal.SIGCONT)
print("done")`;
      const result = await executor.executeCodeBlocks([python(code)]);
      expect(result).toMatchObject({ exitCode: 0, truncated: false, output: expect.stringMatching(/\ndone\n$/) });
      expect(result.displays).toHaveLength(8000);
    });

    it("may print three megabytes at once", patience, async () => {
      await using executor = create({ maxOutputBytes: 10_000_000 });
      const result = await executor.executeCodeBlocks([python("print('x' * 3_000_000)")]);
      expect(result.truncated).toBe(false);
      expect(result.stdout.length).toBe(3_000_001);
    });
  });
});

describe("a server with output limits", needs("jupyter"), () => {
  it("drops output, and the result says so", patience, async () => {
    await using server = await PlainServer.start(jupyterPythons.jupyter);
    await using executor = new JupyterCodeExecutor({ server: server.settings });
    const result = await executor.executeCodeBlocks([python("print('x' * 3_000_000)")]);
    expect(result).toMatchObject({ exitCode: 0, truncated: true });
    expect(result.stderr).toMatch(/IOPub data rate exceeded/);
  });
});

describe("a local server", needs("jupyter"), () => {
  let directory = "";
  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  });
  afterEach(async () => rm(directory, { recursive: true }));

  it("says what to install when Jupyter or Python is missing", patience, async () => {
    const empty = path.join(directory, "python3");
    await writeFile(empty, "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'jupyter_server'\" >&2\nexit 1\n", {
      mode: 0o755,
    });
    await using executor = new JupyterCodeExecutor({ server: new LocalJupyterServer({ python: empty }) });
    await expect(executor.start()).rejects.toThrow(
      /has no jupyter_server.*pip install jupyter_server ipykernel.*apt-get install/,
    );
    await using missing = new JupyterCodeExecutor({ server: new LocalJupyterServer({ python: "/no/python" }) });
    await expect(missing.start()).rejects.toThrow(/\/no\/python \(does not exist\)/);
  });

  it("shows its last lines of output when it fails to start", patience, async () => {
    const broken = path.join(directory, "python3");
    const script = `#!/bin/sh\ncase "$2" in import\\ sys*) echo "${broken}";; *) echo "the reason" >&2; exit 3;; esac\n`;
    await writeFile(broken, script, { mode: 0o755 });
    await using executor = new JupyterCodeExecutor({ server: new LocalJupyterServer({ python: broken }) });
    await expect(executor.start()).rejects.toThrow(/did not start: the process ended with exit code 3\nthe reason\. /);
  });

  it("runs until its last executor stops, and prints nothing to the host's terminal", patience, async () => {
    const written = [vi.spyOn(process.stdout, "write"), vi.spyOn(process.stderr, "write")];
    const logged = (["debug", "log", "info", "warn", "error"] as const).map((name) => vi.spyOn(console, name));
    const server = new LocalJupyterServer({ python: jupyterPythons.jupyter });
    const [one, other] = [new JupyterCodeExecutor({ server }), new JupyterCodeExecutor({ server })];
    await Promise.all([one.start(), other.start()]);
    const { output } = await one.executeCodeBlocks([python("import os; print(os.getppid())")]);
    await one.stop();
    expect((await other.executeCodeBlocks([python("import os; print(os.getppid())")])).output).toBe(output);
    await other.stop();
    expect((await listProcesses()).some(({ pid }) => pid === Number(output))).toBe(false);
    for (const spy of [...written, ...logged]) expect(spy).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });

  it("hides variables of this process from the code, unless inheritEnv names them", patience, async () => {
    process.env["FENCED_TEST_SECRET"] = "secret";
    try {
      const print = python("import os; print(os.environ.get('FENCED_TEST_SECRET'))");
      const server = (inheritEnv: string[]) => new LocalJupyterServer({ python: jupyterPythons.jupyter, inheritEnv });
      await using closed = new JupyterCodeExecutor({ server: server([]) });
      await using open = new JupyterCodeExecutor({ server: server(["FENCED_TEST_SECRET"]) });
      expect((await closed.executeCodeBlocks([print])).output).toBe("None\n");
      expect((await open.executeCodeBlocks([print])).output).toBe("secret\n");
    } finally {
      delete process.env["FENCED_TEST_SECRET"];
    }
  });

  it("limits the memory of kernels and their children to memoryBytes", async () => {
    const server = new LocalJupyterServer({ python: jupyterPythons.jupyter, memoryBytes: 536_870_912 });
    await using executor = new JupyterCodeExecutor({ server });
    const large = "x = bytearray(700 * 1024 * 1024); print(len(x))";
    const result = await executor.executeCodeBlocks([python(large)]);
    expect([result.exitCode, result.stateLost]).toEqual([1, false]);
    expect(result.stderr).toMatch(/MemoryError/);
    const child = await executor.executeCodeBlocks([
      python(
        `import subprocess, sys\nprint(subprocess.run([sys.executable, "-c", ${JSON.stringify(large)}], stderr=subprocess.DEVNULL).returncode)`,
      ),
    ]);
    expect(child.output).toBe("1\n");
    expect((await executor.executeCodeBlocks([python("print('lives on')")])).output).toBe("lives on\n");
    expect(() => new LocalJupyterServer({ memoryBytes: 1 })).toThrow(/memoryBytes.*whole number of bytes/);
  });
});

describe("the config of a component", () => {
  it("never contains a token", () => {
    const executor = new JupyterCodeExecutor({ server: { baseUrl: "https://host/", token: "secret" } });
    expect(() => executor.dumpComponent()).toThrow(ComponentError);
    expect(() => executor.dumpComponent()).not.toThrow(/secret"/);
    const open = new JupyterCodeExecutor({ server: { baseUrl: "https://host/" }, kernelName: "ir" });
    expect(open.dumpComponent().config).toEqual({ server: { baseUrl: "https://host/" }, kernelName: "ir" });
  });

  it("rejects invalid settings", async () => {
    expect(() => new JupyterCodeExecutor({ interruptGraceMs: -1 })).toThrow(InvalidInputError);
    expect(() => new JupyterCodeExecutor({ reconnectTimeoutMs: Number.NaN })).toThrow(InvalidInputError);
    const server = Object.assign({ baseUrl: "https://host/" }, { tokn: "secret" });
    expect(() => new JupyterCodeExecutor({ server })).toThrow(/"server\.tokn"\. Did you mean "token"\?/);
    expect(() => new LocalJupyterServer(Object.assign({ python: "" }, { pyton: "x" }))).toThrow(
      /"python" is empty; unknown option "pyton"/,
    );
    const docker = Object.assign({ baseImage: "python:3-slim" }, { pipPackage: ["pandas"] });
    expect(() => new DockerJupyterServer(docker)).toThrow(/"pipPackage"\. Did you mean "pipPackages"\?/);
    const model = { ...new JupyterCodeExecutor().dumpComponent(), config: { server: { type: "local", pyton: "x" } } };
    const importModule = async () => ({ JupyterCodeExecutor });
    await expect(loadComponent(model, { importModule })).rejects.toThrow(/pyton/);
  });
});
