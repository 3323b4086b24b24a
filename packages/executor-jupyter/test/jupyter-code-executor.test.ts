import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ComponentError, FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import { listProcesses } from "@fenced/executor-kit";
import { jupyterPythons, needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { JupyterCodeExecutor, LocalJupyterServer } from "../src/index.ts";
import { sharedServer } from "./support/local-server.ts";
import { PlainServer } from "./support/plain-server.ts";
import { bash, python } from "./support/python.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Memory that this process holds on to. */
function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const patience = { timeout: 120_000 };

describe.each(["jupyter", "jupyter2"] as const)("cells (%s)", (version) => {
  describe("of a Python kernel", needs(version), () => {
    const { executor: create } = sharedServer(version);

    it("answer input() line by line, and then end it", patience, async () => {
      await using executor = create();
      const code = "a = input('first? '); b = input()\nprint(a, b)\ninput()";
      const result = await executor.executeCodeBlocks([python(code)], { stdin: "1\r\n2" });
      expect(result.stdout).toBe("first? 1 2\n");
      expect(result.stderr).toMatch(/EOFError/);
    });

    it("say how they ended with sys.exit", patience, async () => {
      await using executor = create();
      const exit = async (argument: string) =>
        executor.executeCodeBlocks([python(`import sys; sys.exit(${argument})`)]);
      expect(await exit("")).toMatchObject({ exitCode: 0, output: "" });
      expect(await exit("0")).toMatchObject({ exitCode: 0, output: "" });
      expect((await exit("7")).exitCode).toBe(7);
      const failed = await exit("'words'");
      expect(failed.exitCode).toBe(1);
      expect(failed.output).toMatch(/words/);
    });

    it("in bash and sh keep streams apart, tell exit codes and read stdin", patience, async () => {
      await using executor = create();
      const result = await executor.executeCodeBlocks([bash("read a; echo $a; echo err >&2; exit 7")], {
        stdin: "in\n",
      });
      expect(result).toMatchObject({ exitCode: 7, stdout: "in\n", stderr: "err\n" });
      const killed = await executor.executeCodeBlocks([{ language: "sh", code: "kill -9 $$" }]);
      expect(killed.exitCode).toBe(137);
      const shared = await executor.executeCodeBlocks([
        python("import os; os.environ['X'] = 'of the kernel'"),
        bash("echo $X"),
      ]);
      expect(shared.output).toBe("of the kernel\n");
    });

    it("have functions as variables and in shells too", patience, async () => {
      const double = FunctionWithRequirements.fromString("def double(x):\n    return x * 2");
      await using executor = create({ functions: [double] });
      const result = await executor.executeCodeBlocks([
        python("print(double(21))"),
        bash("python3 -c 'from functions import double; print(double(4))'"),
      ]);
      expect(result.output).toBe("42\n8\n");
    });

    it("leave none of this package's names to the user", patience, async () => {
      await using executor = create();
      const code = "print([name for name in globals() if 'fenced' in name])";
      expect((await executor.executeCodeBlocks([python(code)])).output).toBe("[]\n");
    });

    it("do not see the server's token", patience, async () => {
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
      expect(files.output).toMatch(/none\n$|block-\d+\.sh\n$/);
      await release();
    });

    it(
      "may print a hundred megabytes: memory stays bounded, and only the named cut is lost",
      { timeout: 300_000 },
      async () => {
        await using executor = create({ maxOutputBytes: 1_000_000 });
        await executor.executeCodeBlocks([python("1")]);
        const before = heldBytes();
        let most = 0;
        const timer = setInterval(() => {
          most = Math.max(most, heldBytes() - before);
        }, 100);
        const code = `line = "x" * 999 + "\\n"\nfor i in range(100_000): print(line, end="")\nprint("the end")`;
        const result = await executor.executeCodeBlocks([python(code)], { timeoutMs: 250_000 });
        clearInterval(timer);
        expect(result).toMatchObject({ exitCode: 0, truncated: true });
        expect(result.output).toMatch(/^x{999}\n[^]*\nthe end\n$/);
        const cut = Number(/\[\.\.\. (\d+) bytes of output left out \.\.\.\]/.exec(result.output)?.[1]);
        expect(cut + result.output.replace(/\n\[\.\.\. \d+ bytes of output left out \.\.\.\]\n/, "").length).toBe(
          100_000_008,
        );
        expect(most / 2 ** 20).toBeLessThan(64);
      },
    );

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

  it("says what to install when there is nothing", patience, async () => {
    const empty = path.join(directory, "python3");
    await writeFile(empty, "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'jupyter_server'\" >&2\nexit 1\n", {
      mode: 0o755,
    });
    await using executor = new JupyterCodeExecutor({ server: new LocalJupyterServer({ python: empty }) });
    await expect(executor.start()).rejects.toThrow(
      /has no jupyter_server.*pip install jupyter_server ipykernel.*apt-get install/,
    );
    await using missing = new JupyterCodeExecutor({ server: new LocalJupyterServer({ python: "/no/python" }) });
    await expect(missing.start()).rejects.toThrow(/\/no\/python \(is not there\)/);
  });

  it("shows its last lines when it does not come up", patience, async () => {
    const broken = path.join(directory, "python3");
    const script = `#!/bin/sh\ncase "$2" in import\\ sys*) echo "${broken}";; *) echo "the reason" >&2; exit 3;; esac\n`;
    await writeFile(broken, script, { mode: 0o755 });
    await using executor = new JupyterCodeExecutor({ server: new LocalJupyterServer({ python: broken }) });
    await expect(executor.start()).rejects.toThrow(
      /did not come up: the process ended with exit code 3\nthe reason\. /,
    );
  });

  it("runs from the first executor to the last, and keeps the host's terminal clean", patience, async () => {
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

  it("keeps secrets of this process from the code, unless they are named", patience, async () => {
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
});

describe("the config of a component", () => {
  it("never holds a token", () => {
    const executor = new JupyterCodeExecutor({ server: { baseUrl: "https://host/", token: "secret" } });
    expect(() => executor.dumpComponent()).toThrow(ComponentError);
    expect(() => executor.dumpComponent()).not.toThrow(/secret"/);
    const open = new JupyterCodeExecutor({ server: { baseUrl: "https://host/" }, kernelName: "ir" });
    expect(open.dumpComponent().config).toEqual({ server: { baseUrl: "https://host/" }, kernelName: "ir" });
  });

  it("refuses settings that make no sense", () => {
    expect(() => new JupyterCodeExecutor({ interruptGraceMs: -1 })).toThrow(InvalidInputError);
    expect(() => new JupyterCodeExecutor({ reconnectTimeoutMs: Number.NaN })).toThrow(InvalidInputError);
  });
});
