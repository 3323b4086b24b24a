import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, FunctionWithRequirements } from "@fenced/core";
import { beginBlock } from "@fenced/executor-testkit";
import { jupyterPythons, needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { JupyterCodeExecutor, LocalJupyterServer } from "../src/index.ts";
import { KernelApi } from "./support/kernel-api.ts";
import { anyVersion, sharedServer } from "./support/local-server.ts";
import { bash, python } from "./support/python.ts";

const patience = { timeout: 120_000 };
const stubborn = "import time\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass";

describe.each(anyVersion)("a lost kernel (%s)", (version) => {
  describe("on a local server", needs(version), () => {
    const { executor: create, address } = sharedServer(version);

    /** Runs code that ends the kernel, and returns what a later block prints about the variables. */
    const afterLoss = async (executor: JupyterCodeExecutor, code: string): Promise<string> => {
      await executor.executeCodeBlocks([python("kept = 1")]);
      const result = await executor.executeCodeBlocks([python(code)]);
      expect(result).toMatchObject({ exitCode: 1, timedOut: false, stateLost: true });
      expect(result.output).toMatch(/^before\n[^]*kernel[^]*Variables are lost/);
      const next = await executor.executeCodeBlocks([python("print('kept' in globals())")]);
      expect(next.stateLost).toBe(false);
      return next.output;
    };

    it("is reported when the code ends its process", patience, async () => {
      await using executor = create();
      const code = "print('before', flush=True)\nimport os, time; time.sleep(1); os._exit(3)";
      expect(await afterLoss(executor, code)).toBe("False\n");
    });

    it("is reported when it kills itself", patience, async () => {
      await using executor = create();
      const code = "print('before', flush=True)\nimport os, time; time.sleep(1); os.kill(os.getpid(), 9)";
      expect(await afterLoss(executor, code)).toBe("False\n");
    });

    it("is replaced if it dies when memory runs out: the call ends, and the next one works", patience, async () => {
      await using executor = create();
      const hog =
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 31, resource.RLIM_INFINITY))\nx = [bytearray(1 << 28) for _ in range(99)]";
      const result = await executor.executeCodeBlocks([python(hog)]);
      expect(result.exitCode).toBe(1);
      expect(result.stateLost || result.output.includes("MemoryError")).toBe(true);
      expect((await executor.executeCodeBlocks([python("print(1)")])).output).toBe("1\n");
    });

    it("is reported when another client deletes it", patience, async () => {
      await using executor = create();
      await executor.executeCodeBlocks([python("1")]);
      const api = new KernelApi(await address());
      const before = await api.list();
      const { result } = await beginBlock(executor, python("print(1, flush=True)\nimport time; time.sleep(300)"));
      for (const id of before) await api.remove(id);
      expect(await result).toMatchObject({ exitCode: 1, stateLost: true });
      expect((await executor.executeCodeBlocks([python("print(1)")])).output).toBe("1\n");
    });

    it("is reported when another client restarts it", patience, async () => {
      await using executor = create();
      await executor.executeCodeBlocks([python("1")]);
      const api = new KernelApi(await address());
      const { result } = await beginBlock(executor, python("print(1, flush=True)\nimport time; time.sleep(300)"));
      for (const id of await api.list()) await api.restart(id);
      expect(await result).toMatchObject({ exitCode: 1, stateLost: true });
      expect((await executor.executeCodeBlocks([python("print(1)")])).output).toBe("1\n");
    });

    it("is reported by the next call if it is lost between calls", patience, async () => {
      await using executor = create();
      await executor.executeCodeBlocks([python("kept = 1")]);
      const api = new KernelApi(await address());
      for (const id of await api.list()) await api.remove(id);
      await sleep(500);
      const next = await executor.executeCodeBlocks([python("print('kept' in globals())")]);
      const after =
        next.exitCode === 0 ? next : await executor.executeCodeBlocks([python("print('kept' in globals())")]);
      expect(next.stateLost).toBe(true);
      expect(after.output).toBe("False\n");
    });

    it("does not leave running what it had started", patience, async () => {
      await using executor = create();
      const started = await executor.executeCodeBlocks([bash("setsid sleep 4321 & echo $!")]);
      await executor.executeCodeBlocks([python("import os; os._exit(1)")]);
      const pid = started.output.trim();
      const look = bash(
        `for i in $(seq 400); do kill -0 ${pid} 2>/dev/null || break; sleep 0.1; done; kill -0 ${pid} 2>&1 | grep -c "No such"`,
      );
      expect((await executor.executeCodeBlocks([look])).output).toBe("1\n");
    });

    it("is replaced by one that has its functions", patience, async () => {
      const double = FunctionWithRequirements.fromString("def double(x):\n    return x * 2");
      await using executor = create({ functions: [double] });
      const use = python("from functions import double as imported\nprint(double(2), imported(3))");
      expect((await executor.executeCodeBlocks([use])).output).toBe("4 6\n");
      await executor.executeCodeBlocks([python("import os; os._exit(1)")]);
      expect((await executor.executeCodeBlocks([use])).output).toBe("4 6\n");
    });
  });
});

describe.each(anyVersion)("code that cannot be interrupted (%s)", (version) => {
  describe("on a local server", needs(version), () => {
    const { executor: create } = sharedServer(version);

    it("loses the variables, which the result reports, and the next call works", patience, async () => {
      await using executor = create({ interruptGraceMs: 500 });
      const result = await executor.executeCodeBlocks([python(`print("so far", flush=True)\n${stubborn}`)], {
        timeoutMs: 6000,
      });
      expect(result).toMatchObject({ exitCode: 124, timedOut: true, stateLost: true, output: "so far\n" });
      const next = await executor.executeCodeBlocks([python("print(1)")]);
      expect(next).toMatchObject({ output: "1\n", stateLost: false });
    });

    it("is reported by the next result if the call itself was aborted", patience, async () => {
      await using executor = create({ interruptGraceMs: 500 });
      await executor.start();
      const controller = new AbortController();
      const call = async (): Promise<void> => {
        const code = `print("begun", flush=True)\n${stubborn}`;
        for await (const { type } of executor.streamCodeBlocks([python(code)], { signal: controller.signal })) {
          // It catches what interrupts it from a moment later on.
          if (type === "stdout") setTimeout(() => controller.abort(new Error("enough")), 500);
        }
      };
      await expect(call()).rejects.toThrow("enough");
      expect(await executor.executeCodeBlocks([python("print(1)")])).toMatchObject({ output: "1\n", stateLost: true });
      expect(await executor.executeCodeBlocks([python("print(1)")])).toMatchObject({ output: "1\n", stateLost: false });
    });

    it("differs from code that can, which keeps the variables", patience, async () => {
      await using executor = create({ interruptGraceMs: 30_000 });
      await executor.executeCodeBlocks([python("kept = 1")]);
      for (const block of [python("import time; time.sleep(300)"), bash("sleep 300"), python("while True: pass")]) {
        const result = await executor.executeCodeBlocks([block], { timeoutMs: 1500 });
        expect(result).toMatchObject({ timedOut: true, stateLost: false });
      }
      expect((await executor.executeCodeBlocks([python("print(kept)")])).output).toBe("1\n");
    });
  });
});

describe.each(anyVersion)("a lost server (%s)", (version) => {
  it("fails the running call, and the next one starts it again", { ...patience, ...needs(version) }, async () => {
    const server = new LocalJupyterServer({ python: jupyterPythons[version] });
    await using executor = new JupyterCodeExecutor({ server });
    const { output } = await executor.executeCodeBlocks([python("import os; print(os.getppid(), flush=True)")]);
    const { result } = await beginBlock(executor, python("import time; print(1, flush=True); time.sleep(300)"));
    process.kill(Number(output), "SIGKILL");
    await expect(result).rejects.toSatisfy(BackendUnavailableError.isInstance);
    const next = await executor.executeCodeBlocks([python("print(1)")]);
    expect(next).toMatchObject({ output: "1\n", stateLost: true });
  });

  it("keeps the files of all its executors", { ...patience, ...needs(version) }, async () => {
    await using server = new LocalJupyterServer({ python: jupyterPythons[version] });
    await using one = new JupyterCodeExecutor({ server });
    await using other = new JupyterCodeExecutor({ server });
    const { output } = await one.executeCodeBlocks([python("import os; print(os.getppid(), flush=True)")]);
    await other.start();
    for (const { files } of [one, other]) await files.write("before.txt", "1");
    let losses = 0;
    for (const executor of [one, other]) executor.onSessionLost(() => (losses += 1));
    process.kill(Number(output), "SIGKILL");
    for (const { files } of [one, other]) await files.write("after.txt", "2");
    // A block that begins before would fail, since nobody knows what became of it.
    await expect.poll(() => losses, { timeout: 60_000 }).toBe(2);
    const list = python("import os; print(*sorted(os.listdir('.')))");
    for (const executor of [one, other]) {
      expect(await executor.executeCodeBlocks([list])).toMatchObject({
        output: "after.txt before.txt\n",
        stateLost: true,
      });
    }
    const scratch = dirname(dirname(one.workspacePath ?? ""));
    expect(existsSync(scratch)).toBe(true);
    await Promise.all([one.stop(), other.stop()]);
    expect(existsSync(scratch)).toBe(false);
  });
});
