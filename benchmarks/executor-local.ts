/**
 * Measures the overhead of the local executor over a bare process: the same programs, started by `spawn` with pipes and read
 * to their end, in the same run.
 */
// needs: python3, bash
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { byTurns, memoryGrowth, report, timed } from "./measure.ts";

const directory = await mkdtemp(join(tmpdir(), "fenced-bench-"));
await using executor = new LocalCommandLineCodeExecutor({ timeoutMs: 300_000 });
await using warm = new LocalCommandLineCodeExecutor({ warm: {} });
await using stateful = new LocalCommandLineCodeExecutor({ stateful: true });
const [python = ""] = (await run("python", "import sys; print(sys.executable)")).stdout.split("\n");

const gigabyte = `
import os
block = b"x" * 65536
for _ in range(16384):
    left = block
    while left:
        left = left[os.write(1, left):]
`;

async function run(language: string, code: string, on: LocalCommandLineCodeExecutor = executor) {
  const result = await on.executeCodeBlocks([{ language, code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
  return result;
}

/** A bare process on a file, as the executor starts one. */
async function bare(program: string, code: string): Promise<void> {
  const file = join(directory, "block");
  await writeFile(file, code);
  const child = spawn(program, [file], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  await once(child, "close");
}

/** A block after a pause in which the next interpreter starts, against a bare start of the same interpreter. */
const waited = (program: string, language: string, code: string, on: LocalCommandLineCodeExecutor) =>
  byTurns(
    40,
    () => timed(() => bare(program, code)),
    async () => {
      await sleep(300);
      return timed(() => run(language, code, on));
    },
  );

/** The fastest reader of a pipe on the machine. */
async function toCat(): Promise<void> {
  const file = join(directory, "block");
  await writeFile(file, gigabyte);
  await once(spawn("sh", ["-c", `"${python}" "${file}" | cat > /dev/null`], { stdio: "ignore" }), "exit");
}

const stream = async (code: string): Promise<void> => {
  for await (const event of executor.streamCodeBlocks([{ language: "python", code }])) void event;
};

report("Local executor against a bare spawn", [
  {
    what: "sh block, `:`",
    unit: "ms",
    ...(await byTurns(
      200,
      () => timed(() => bare("sh", ":")),
      () => timed(() => run("sh", ":")),
    )),
    goal: "< 3 ms over raw",
  },
  {
    what: "python block, `print(1)`",
    unit: "ms",
    ...(await byTurns(
      60,
      () => timed(() => bare(python, "print(1)")),
      () => timed(() => run("python", "print(1)")),
    )),
    goal: "ratio at most 1.05",
  },
  {
    what: "warm python block, `print(1)`",
    unit: "ms",
    ...(await waited(python, "python", "print(1)", warm)),
    goal: "ratio at most 0.3",
  },
  {
    what: "warm javascript block, `console.log(1)`",
    unit: "ms",
    ...(await waited(process.execPath, "javascript", "console.log(1)", warm)),
    goal: "",
  },
  {
    what: "stateful python block, `print(1)`",
    unit: "ms",
    ...(await waited(python, "python", "print(1)", stateful)),
    goal: "at most 5 ms",
  },
  {
    what: "1 GB of output, against `| cat > /dev/null`",
    unit: "ms",
    ...(await byTurns(
      5,
      () => timed(toCat),
      () => timed(() => run("python", gigabyte)),
    )),
    goal: "as fast as a pipe is read",
  },
  {
    what: "1 GB of output as text events, against a spawn's bytes",
    unit: "ms",
    ...(await byTurns(
      5,
      () => timed(() => bare(python, gigabyte)),
      () => timed(() => stream(gigabyte)),
    )),
    goal: "",
  },
  {
    what: "memory growth by 1 GB of output",
    unit: "MB",
    ...(await byTurns(
      3,
      () => memoryGrowth(() => bare(python, gigabyte)),
      () => memoryGrowth(() => run("python", gigabyte)),
    )),
    goal: "< 50 MB",
  },
]);

await rm(directory, { recursive: true });
