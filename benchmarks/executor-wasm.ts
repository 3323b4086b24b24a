/**
 * What the WASM executor costs over Pyodide itself, in this process: without a boundary, limits or files. A session starts from the
 * snapshot in the cache.
 */
import { readFile } from "node:fs/promises";
import { listProcesses } from "@fenced/executor-kit";
import { WasmCodeExecutor } from "@fenced/executor-wasm";
import { loadPyodide } from "pyodide";
import { byTurns, report, timed } from "./measure.ts";

const pyodide = await loadPyodide();
await using executor = new WasmCodeExecutor();
await executor.start();

async function run(code: string): Promise<string> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
  return result.output;
}

async function startAndStop(): Promise<void> {
  await using other = new WasmCodeExecutor();
  await other.start();
}

/** Resident memory of the interpreter's process, the largest child of this one. */
async function residentBytes(): Promise<number> {
  let most = 0;
  for (const { pid, parent } of await listProcesses()) {
    if (parent !== process.pid) continue;
    const text = await readFile(`/proc/${pid}/statm`, "utf8").catch(() => "");
    most = Math.max(most, Number(text.split(" ")[1] ?? 0) * 4096);
  }
  return most;
}

async function growth(blocks: number): Promise<number> {
  await run("x = 1");
  const before = (await residentBytes()) + process.memoryUsage().rss;
  for (let block = 0; block < blocks; block += 1) await run(`x = [${block}] * 1000\nprint(len(x))`);
  return ((await residentBytes()) + process.memoryUsage().rss - before) / 1e6;
}

report("WASM executor against Pyodide in this process", [
  {
    what: "start from the snapshot",
    unit: "ms",
    ...(await byTurns(
      5,
      () => timed(async () => void (await loadPyodide())),
      () => timed(startAndStop),
    )),
    goal: "at most 1 s",
  },
  {
    what: "python block, `print(1)`",
    unit: "ms",
    ...(await byTurns(
      50,
      () => timed(async () => void pyodide.runPython("len('1')")),
      () => timed(async () => void (await run("print(1)"))),
    )),
    goal: "at most 10 ms",
  },
  { what: "growth over 1,000 blocks", unit: "MB", raw: [], ours: [await growth(1000)], goal: "at most 50 MB" },
]);
