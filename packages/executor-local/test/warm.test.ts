import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FunctionWithRequirements } from "@fenced/core";
import type { LocalCommandLineCodeExecutor, LocalExecutorOptions } from "@fenced/executor-local";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { forkerCode } from "@fenced/test-support/warm-python";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { findProgram } from "../src/languages/find-languages.ts";
import { hostSubject, supervisorOf } from "./support/host-subject.ts";
import { executorWith } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";
import { WarmExecutor } from "./support/warm-executor.ts";

async function printed(executor: LocalCommandLineCodeExecutor, code: string, language = "python"): Promise<string> {
  return (await executor.executeCodeBlocks([{ language, code }])).output.trim();
}

function warmWith(options: LocalExecutorOptions = {}): WarmExecutor {
  const executor = new WarmExecutor({ warm: {}, ...options });
  onTestFinished(async () => executor.stop());
  return executor;
}

/** Programs that print what they see of their process, which must be the same wherever they start. */
const views: Readonly<Record<string, string>> = {
  python: `
import json, os, resource, signal, sys
print(json.dumps({
    "variables": {name: value for name, value in os.environ.items() if not name.startswith("FENCED_")},
    "marks": sorted(name for name in os.environ if name.startswith("FENCED_")),
    "place": [os.getcwd(), sys.path, sys.executable, sys.prefix, os.getuid()],
    "leader": os.getpgrp() == os.getsid(0) == os.getpid(),
    # Those above may come from the program that started the tests.
    "descriptors": sorted(name for name in os.listdir("/proc/self/fd") if int(name) < 10),
    "limits": [resource.getrlimit(each) for each in range(16)],
    "signals": [str(signal.getsignal(each)) for each in signal.valid_signals()],
    "input": sys.stdin.read(),
}, indent=1, sort_keys=True))`,
  javascript: `
const variables = Object.entries(process.env).filter(([name]) => !name.startsWith("FENCED_")).sort();
console.log(JSON.stringify([variables, process.cwd(), process.execPath, process.argv.length]));`,
  sh: "env | grep -v ^FENCED_ | sort",
};

describe.skipIf(process.platform !== "linux")(
  "warm interpreters on this host",
  needs("python3", "bash", "node"),
  () => {
    testCodeExecutor(
      { describe, it, afterAll },
      {
        ...hostSubject,
        name: "LocalCommandLineCodeExecutor, warm,",
        create: (options) => new WarmExecutor({ ...options, warm: {} }),
        hostCommand: [...hostSubject.hostCommand, "warm"],
        breakPlace: async (executor) => {
          if (!(executor instanceof WarmExecutor)) throw new Error("another executor");
          process.kill(await supervisorOf(executor.mark), "SIGKILL");
        },
      },
      variant("environment", "background processes", "lost session", "leaks"),
    );

    // Otherwise the suite would prove nothing.
    afterAll(() => {
      if (WarmExecutor.sessions === 0) throw new Error("No session had a waiting interpreter.");
    });

    // In the C locale, Python sets LC_CTYPE.
    it.each(["C.UTF-8", "C"])("runs blocks that see the same as without it, with LANG=%s", async (LANG) => {
      const env = { OWN: "1", LANG, LC_ALL: "" };
      const options = { workDir: await temporaryDirectory(), inheritEnv: ["NODE_ENV"], env };
      const [cold, warm] = [executorWith(options), warmWith(options)];
      for (const [language, code] of Object.entries(views)) {
        expect(await printed(warm, code, language)).toBe(await printed(cold, code, language));
      }
      expect(await printed(warm, forkerCode)).toMatch(/ True$/);
    });

    it("preloads modules with the Python of a virtual environment", async () => {
      const root = path.join(await temporaryDirectory(), "venv");
      await mkdir(path.join(root, "bin"), { recursive: true });
      const python = await printed(executorWith(), "import sys; print(sys.executable)");
      for (const name of ["python", "python3"]) await symlink(python, path.join(root, "bin", name));
      await writeFile(path.join(root, "pyvenv.cfg"), `home = ${path.dirname(python)}\n`);
      const twice = FunctionWithRequirements.fromString("def twice(x: int) -> int:\n    return 2 * x\n");
      const executor = warmWith({ virtualEnv: root, warm: { preload: ["decimal"] }, functions: [twice] });
      const code =
        "import sys\nprint('decimal' in sys.modules, sys.prefix)\nfrom functions import twice\nprint(twice(21))";
      expect(await printed(executor, code)).toBe(`True ${root}\n42`);
      expect(await printed(executor, forkerCode)).toMatch(/ True$/);
    });

    it.each(["SIGKILL", "SIGSTOP"])(
      "fails no block after an earlier one has sent the waiting interpreter %s",
      async (signal) => {
        const executor = warmWith();
        const [first = ""] = (await printed(executor, forkerCode)).split(" ");
        await printed(executor, `import os, signal\nos.kill(${first}, signal.${signal})`);
        expect(await printed(executor, "print(6 * 7)")).toBe("42");
        await expect.poll(() => printed(executor, forkerCode), { timeout: 60_000 }).toMatch(/ True$/);
      },
    );

    it("stops without waiting for a supervisor that code has stopped", async () => {
      const executor = warmWith();
      await executor.start();
      const block = { language: "python", code: "print('runs', flush=True)\nimport time\ntime.sleep(600)" };
      let held = false;
      const reading = (async () => {
        for await (const event of executor.streamCodeBlocks([block])) {
          if (event.type === "stdout") process.kill(await supervisorOf(executor.mark), "SIGSTOP");
          held ||= event.type === "stdout";
        }
      })().catch(String);
      await expect.poll(() => held).toBe(true);
      const stopped = executor.stop().then(() => "stopped");
      // An executor that keeps running waits ten seconds for the end of a block.
      expect(await Promise.race([stopped, sleep(9000)])).toBe("stopped");
      expect(await reading).toContain("The executor was stopped");
    });

    it("leaves nothing in the home directory", async () => {
      const home = await temporaryDirectory();
      vi.stubEnv("HOME", home);
      onTestFinished(() => {
        vi.unstubAllEnvs();
      });
      for (const options of [{ warm: {} }, { stateful: true }, { warm: {}, keepAliveMs: 60_000 }]) {
        const executor = executorWith(options);
        expect(await printed(executor, "print(6 * 7)")).toBe("42");
        await executor.stop();
        expect(await readdir(home)).toEqual([]);
      }
    });

    it("runs blocks cold if there is no Python, but rejects a stateful session", async () => {
      const bin = await temporaryDirectory();
      await symlink(findProgram("sh", process.env["PATH"] ?? "") ?? "", path.join(bin, "sh"));
      vi.stubEnv("PATH", bin);
      onTestFinished(() => {
        vi.unstubAllEnvs();
      });
      expect(await printed(executorWith({ warm: {} }), "echo 42", "sh")).toBe("42");
      await expect(executorWith({ stateful: true }).start()).rejects.toThrow("there is no `python3` on the PATH");
      const kept = executorWith({ warm: {}, keepAliveMs: 60_000 });
      await expect(kept.start()).rejects.toThrow(
        /there is no `python3` on the PATH.* Install Python 3.8 or later as `python3`, or leave `keepAliveMs` out/s,
      );
      await writeFile(path.join(bin, "python3"), "#!/bin/sh\necho too old >&2\nexit 1\n", { mode: 0o755 });
      await expect(executorWith({ warm: {} }).start()).rejects.toThrow(/too old.*Install Python 3\.8 or later/su);
      await expect(kept.start()).rejects.toThrow(/too old.*Install Python 3\.8 or later/su);
    });
  },
);
