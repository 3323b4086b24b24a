/**
 * Measures the overhead of sandboxed blocks over unsandboxed ones of the same executor, and of a start over bubblewrap alone.
 */
// needs: python3, bash, bubblewrap
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { byTurns, report, timed } from "./measure.ts";

await using open = new LocalCommandLineCodeExecutor();
await using fenced = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" });
await using warm = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", warm: {} });

async function run(executor: LocalCommandLineCodeExecutor, language: string, code: string): Promise<void> {
  const result = await executor.executeCodeBlocks([{ language, code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
}

const both = (rounds: number, language: string, code: string) =>
  byTurns(
    rounds,
    () => timed(() => run(open, language, code)),
    () => timed(() => run(fenced, language, code)),
  );

/** The interpreter of the blocks. */
async function interpreter(language: string, code: string): Promise<string> {
  const { output } = await open.executeCodeBlocks([{ language, code }]);
  return output.trim();
}

async function spawned(program: string, words: readonly string[]): Promise<void> {
  await once(spawn(program, words, { stdio: "ignore" }), "close");
}

/** A warm block after a pause in which the next interpreter starts, against a bare start of the same interpreter. */
const waited = (program: string, language: string, code: string, words: readonly string[]) =>
  byTurns(
    40,
    () => timed(() => spawned(program, words)),
    async () => {
      await sleep(300);
      return timed(() => run(warm, language, code));
    },
  );

/** A sandbox with a Python in it that does nothing. */
async function bare(): Promise<void> {
  const namespaces = ["--unshare-user", "--unshare-pid", "--unshare-net", "--proc", "/proc"];
  const places = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"];
  const words = [...namespaces, ...places, "--dev", "/dev", "/usr/bin/python3", "-I", "-S", "-c", ""];
  await once(spawn("bwrap", words, { stdio: "ignore" }), "exit");
}

async function startAndStop(): Promise<void> {
  await using executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" });
  await executor.start();
}

const gigabyte = `
import os
block = b"x" * 65536
for _ in range(16384):
    left = block
    while left:
        left = left[os.write(1, left):]
`;

const python = await interpreter("python", "import sys; print(sys.executable)");

report("OS sandbox against the local executor without one", [
  { what: "sh block, `:`", unit: "ms", ...(await both(200, "sh", ":")), goal: "< 10 ms over unsandboxed" },
  {
    what: "python block, `print(1)`",
    unit: "ms",
    ...(await both(60, "python", "print(1)")),
    goal: "< 10 ms over unsandboxed",
  },
  {
    what: "warm python block, `print(1)`, against a spawn of Python",
    unit: "ms",
    ...(await waited(python, "python", "print(1)", ["-c", "print(1)"])),
    goal: "ratio at most 0.3",
  },
  {
    what: "warm javascript block, `console.log(1)`, against a spawn of Node",
    unit: "ms",
    ...(await waited(process.execPath, "javascript", "console.log(1)", ["-e", "console.log(1)"])),
    goal: "",
  },
  { what: "1 GB of output", unit: "ms", ...(await both(5, "python", gigabyte)), goal: "ratio at most 1.2" },
  {
    what: "start and stop, against bubblewrap with an empty Python",
    unit: "ms",
    ...(await byTurns(
      20,
      () => timed(bare),
      () => timed(startAndStop),
    )),
    goal: "at most 50 ms",
  },
]);
