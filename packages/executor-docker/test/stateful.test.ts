import { readFile } from "node:fs/promises";
import { hostFunction } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, run } from "./support/create-executor.ts";
import { dockerSubject } from "./support/docker-subject.ts";
import { nodeImage } from "./support/images.ts";

/** An image with IPython. */
const jupyterImage = "fenced-test:jupyter";

describe("a stateful session in a container", needs("docker"), () => {
  describe("with IPython", needs("jupyterDocker"), () => {
    testCodeExecutor(
      { describe, it, afterAll },
      {
        ...dockerSubject("stateful, with IPython", jupyterImage),
        create: (options) =>
          new DockerCommandLineCodeExecutor({ image: jupyterImage, network: "none", stateful: true, ...options }),
      },
      mechanism("displays", "state", "output"),
    );

    it("shows values and displays by IPython's rules, and saves them", async () => {
      await using executor = createExecutor({ image: jupyterImage, stateful: true });
      await executor.start();
      expect(executor.capabilities).toMatchObject({ stateful: true, displays: true });
      const shown = await run(
        executor,
        "python",
        `class Table:
    def __repr__(self): return "a table"
    def _repr_html_(self): return "<table></table>"
print("before")
Table()
`,
      );
      expect(shown.stdout).toBe("before\na table\n");
      expect(shown.displays[0]?.data).toEqual({ "text/plain": "a table", "text/html": "<table></table>" });
      expect(await readFile(shown.displays[0]?.files[0] ?? "", "utf8")).toBe("<table></table>");
      const updated = await run(
        executor,
        "python",
        `from IPython.display import HTML, clear_output, display
print("gone")
clear_output()
handle = display(HTML("one"), display_id=True)
handle.update(HTML("two"))
print("end")
`,
      );
      expect(updated.stdout).not.toContain("gone");
      expect(updated.displays.map(({ data }) => data["text/html"])).toEqual(["two"]);
      expect((await run(executor, "python", "words = !echo from a shell\nprint(words[0])")).stdout).toBe(
        "from a shell\n",
      );
      await using fork = await executor.fork();
      expect((await run(fork, "python", "Table()")).displays).toHaveLength(1);
    });
  });

  it("runs initCommand once, preloads imports, and does not affect other languages", async () => {
    await using executor = createExecutor({
      stateful: true,
      initCommand: "export SET=here; echo x >> /workspace/count",
      warm: { preload: ["decimal"] },
    });
    const code = "import os, sys\nprint(os.environ['SET'], 'decimal' in sys.modules, len(open('count').readlines()))";
    for (let turn = 0; turn < 2; turn += 1) expect((await run(executor, "python", code)).output).toBe("here True 1\n");
    expect((await run(executor, "sh", "echo $SET $0 | wc -w")).output).toBe("2\n");
    expect(executor.capabilities).toMatchObject({ stateful: true, displays: false });
  });

  it("needs an image with Python", async () => {
    await using executor = createExecutor({ image: nodeImage, stateful: true });
    await expect(executor.start()).rejects.toThrow("A stateful session needs Python");
  });

  it("can be forked: the fork has the variables, files and host functions, and runs its own calls", async () => {
    const add = hostFunction({
      name: "add",
      description: "Adds.",
      input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
      execute: (input) => Number(Reflect.get(Object(input), "a")) + Number(Reflect.get(Object(input), "b")),
    });
    await using executor = createExecutor({ stateful: true, functions: [add], timeoutMs: 100_000 });
    await run(executor, "python", "from functions import add\nx = 1\nopen('file', 'w').write('same')");
    await using fork = await executor.fork();
    const code = "x += 1\nprint(x, add(x, 10), open('file').read())";
    expect((await run(fork, "python", code)).output).toBe("2 12 same\n");
    expect((await run(executor, "python", code)).output).toBe("2 12 same\n");
    expect((await run(fork, "sh", "cat file")).output).toBe("same");
    const slow = run(fork, "python", "import time\nwhile 'go' not in globals(): time.sleep(0.01)");
    slow.catch(() => {});
    expect((await run(executor, "python", "print(x)")).output).toBe("2\n");
    await fork.restart();
    await expect(slow).rejects.toThrow("stopped or restarted");
    expect((await run(fork, "python", "'x' in globals()")).output).toBe("False\n");
    await fork.stop();
    expect((await run(executor, "python", "print(x)")).output).toBe("2\n");
    await fork.start();
    expect((await run(fork, "python", "print('again')")).output).toBe("again\n");
    expect(() => fork.dumpComponent()).toThrow("Dump the executor that it was forked from");
  });

  it("tells a fork that its variables are lost when the original restarts, and ends it with the original", async () => {
    const executor = createExecutor({ stateful: true });
    await run(executor, "python", "x = 1");
    await using fork = await executor.fork();
    await executor.restart();
    const first = await run(fork, "python", "'x' in globals()");
    expect([first.output, first.stateLost]).toEqual(["False\n", true]);
    expect((await run(fork, "python", "1")).stateLost).toBe(false);
    await executor[Symbol.asyncDispose]();
    await expect(run(fork, "python", "1")).rejects.toThrow("The executor is stopped");
  });

  it("rejects a fork that is aborted, and any fork of a session that is not stateful", async () => {
    await using plain = createExecutor();
    await expect(plain.fork()).rejects.toThrow("Set `stateful: true`");
    await using executor = createExecutor({ stateful: true });
    const busy = run(executor, "python", "import time; time.sleep(1)");
    await expect(executor.fork({ signal: AbortSignal.timeout(100) })).rejects.toThrow("aborted due to timeout");
    expect((await busy).exitCode).toBe(0);
  });
});
