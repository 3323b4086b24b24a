/**
 * Measures checkpoints of 100 MB in 1,000 files, against `tar` with the same files in the same run.
 */
// needs: bash
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { directoryStore } from "@fenced/checkpoints";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { byTurns, report, timed } from "./measure.ts";

const run = promisify(execFile);
const directory = await mkdtemp(join(tmpdir(), "fenced-bench-"));
const workDir = join(directory, "workspace");
const archive = join(directory, "files.tar");
const store = directoryStore(join(directory, "store"));
const rounds = 7;

const fileName = (count: number): string => join(workDir, `d${count % 10}`, `f${count}`);
async function write(count: number): Promise<void> {
  await writeFile(fileName(count), randomBytes(100_000));
}

for (let count = 0; count < 10; count += 1) await mkdir(join(workDir, `d${count}`), { recursive: true });
for (let count = 0; count < 1000; count += 1) await write(count);

await using executor = new LocalCommandLineCodeExecutor({ workDir });
await executor.start();
let { id } = await executor.checkpoint({ store });
let mostNewBytes = 0;

/** Another hundredth of the files each time. */
let next = 0;
async function changeSome(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await write((next + count) % 1000);
  next += 10;
}

const incremental = await byTurns(
  rounds,
  () => timed(() => run("tar", ["-cf", archive, "-C", workDir, "."])),
  async () => {
    await changeSome();
    return timed(async () => {
      const receipt = await executor.checkpoint({ store });
      id = receipt.id;
      mostNewBytes = Math.max(mostNewBytes, receipt.newBytes);
    });
  },
);

/** An empty session's start is the floor that a restore cannot do without. */
const restored = await byTurns(
  rounds,
  async () => {
    const target = await mkdtemp(join(directory, "tar-"));
    const duration = await timed(() => run("tar", ["-xf", archive, "-C", target]));
    await rm(target, { recursive: true });
    return duration;
  },
  async () => {
    await using empty = new LocalCommandLineCodeExecutor();
    const start = await timed(() => empty.start());
    await using later = new LocalCommandLineCodeExecutor({ restore: { store, id } });
    return (await timed(() => later.start())) - start;
  },
);

report("Checkpoints of 100 MB in 1,000 files", [
  { what: "checkpoint, 1 % changed, against `tar -c` of all", unit: "ms", ...incremental, goal: "<= 300 ms" },
  { what: "restore, against `tar -x`", unit: "ms", ...restored, goal: "<= 1.5 times raw" },
]);
console.log(`new bytes in the store, at most: ${mostNewBytes} (goal: 2,000,000)`);
await executor.stop();
await rm(directory, { recursive: true, force: true });
