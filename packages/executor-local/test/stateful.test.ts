import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
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

/** Whether the system has huge pages for programs that ask for them, and a C library whose `malloc` can (glibc 2.35). */
const hugePages =
  !(await readFile("/sys/kernel/mm/transparent_hugepage/enabled", "utf8").catch(() => "[never]")).includes("[never]") &&
  Number(/^ldd .* 2\.(\d+)$/m.exec(String(spawnSync("ldd", ["--version"]).stdout))?.[1]) >= 35;

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

    it("waits until all of a lost session has ended, so that its end does not end the next one", async () => {
      let lose = (): void => {};
      const lost = new Promise<void>((resolve) => {
        lose = resolve;
      });
      await using executor = new StatefulExecutor({ onSessionLost: () => lose() });
      // The system needs a while to take its memory back.
      const holder = `
import mmap, time
memory = mmap.mmap(-1, 400_000_000)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for place in range(0, len(memory), 4096): memory[place] = 1
print("full", flush=True)
time.sleep(60)
`;
      const start = `
import subprocess, sys
holder = subprocess.Popen([sys.executable, "-c", ${JSON.stringify(holder)}], stdout=subprocess.PIPE, start_new_session=True)
print(holder.stdout.readline())
`;
      await printed(executor, start);
      process.kill(await supervisorOf(executor.mark), "SIGKILL");
      await lost;
      expect(await printed(executor, "print('next')")).toBe("next");
      expect(await printed(executor, "print('still')")).toBe("still");
    });

    it.skipIf(!hugePages)("keeps large arrays in huge pages, with variables that say nothing of that", async () => {
      await using executor = new LocalCommandLineCodeExecutor({ stateful: true });
      const code = `
import os
data = bytearray(b"x") * 64_000_000
print(sum(int(line.split()[1]) for line in open("/proc/self/smaps") if line.startswith("AnonHugePages")) > 30_000)
print(os.environ.get("GLIBC_TUNABLES"), os.system("test -z $GLIBC_TUNABLES"))
`;
      const { output } = await executor.executeCodeBlocks([{ language: "python", code }]);
      expect(output).toBe("True\nNone 0\n");
      await using own = new LocalCommandLineCodeExecutor({
        stateful: true,
        env: { GLIBC_TUNABLES: "glibc.malloc.check=0" },
      });
      const print = "import os; print(os.environ['GLIBC_TUNABLES'])";
      const { output: kept } = await own.executeCodeBlocks([{ language: "python", code: print }]);
      expect(kept).toBe("glibc.malloc.check=0\n");
    });

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
