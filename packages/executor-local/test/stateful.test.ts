import path from "node:path";
import { FunctionWithRequirements } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { createVirtualEnv, LocalCommandLineCodeExecutor, type LocalExecutorOptions } from "@fenced/executor-local";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { hostSubject, supervisorOf } from "./support/host-subject.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

/** Can be identified without a block, which would have to wait for its turn. */
class StatefulExecutor extends LocalCommandLineCodeExecutor {
  constructor(options: LocalExecutorOptions = {}) {
    super({ ...options, stateful: true });
  }

  get mark(): string {
    return this.id;
  }
}

type Runner = Pick<LocalCommandLineCodeExecutor, "executeCodeBlocks">;

async function printed(executor: Runner, code: string): Promise<string> {
  return (await executor.executeCodeBlocks([{ language: "python", code }])).output.trim();
}

describe.skipIf(process.platform !== "linux")(
  "a stateful session on this host",
  needs("python3", "bash", "node"),
  () => {
    testCodeExecutor(
      { describe, it, afterAll },
      {
        ...hostSubject,
        name: "LocalCommandLineCodeExecutor, stateful,",
        create: (options) => new StatefulExecutor(options),
        hostCommand: [...hostSubject.hostCommand, "stateful"],
        breakPlace: async (executor) => {
          if (!(executor instanceof StatefulExecutor)) throw new Error("another executor");
          process.kill(await supervisorOf(executor.mark), "SIGKILL");
        },
      },
      variant("state", "lost session"),
    );

    it("can be forked, and the fork ends with its original", async () => {
      const executor = new StatefulExecutor();
      await printed(executor, "x = [1]");
      await using fork = await executor.fork();
      expect(await printed(fork, "x.append(2); print(x)")).toBe("[1, 2]");
      expect(await printed(executor, "print(x)")).toBe("[1]");
      await executor[Symbol.asyncDispose]();
      await expect(printed(fork, "print(x)")).rejects.toThrow("The executor is stopped");
      expect((await listProcesses()).filter(({ pid }) => hasVariable(pid, "FENCED_SESSION", executor.mark))).toEqual(
        [],
      );
    });

    it("preloads modules, and finds functions alongside a virtual environment", async () => {
      const virtualEnv = await createVirtualEnv(path.join(await temporaryDirectory(), "venv"));
      await using executor = new StatefulExecutor({
        virtualEnv,
        warm: { preload: ["decimal"] },
        functions: [FunctionWithRequirements.fromString("def twice(x: int) -> int:\n    return 2 * x\n")],
      });
      const code = "import sys\nfrom functions import twice\nprint('decimal' in sys.modules, sys.prefix, twice(21))";
      expect(await printed(executor, code)).toBe(`True ${virtualEnv} 42`);
    });
  },
);
