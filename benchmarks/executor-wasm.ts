/**
 * Measures the overhead of the WASM executor over its engines, Pyodide and QuickJS, in this process: without a boundary, limits
 * or files. A Python session starts from the snapshot in the cache.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { listProcesses } from "@fenced/executor-kit";
import { WasmCodeExecutor, type WasmExecutorOptions } from "@fenced/executor-wasm";
import { loadPyodide } from "pyodide";
import { QuickJS } from "quickjs-wasi";
import { byTurns, report, timed } from "./measure.ts";

const pyodide = await loadPyodide();
const { resolve } = createRequire(import.meta.url);
const wheels = path.join(resolve("@fenced/executor-wasm/package.json"), "../vendor");
const engine = await readFile(resolve("quickjs-wasi/quickjs.wasm"));
const quickJs = await QuickJS.create({ wasm: engine });
await using executor = new WasmCodeExecutor();
await executor.start();
console.log(`OS sandbox: ${JSON.stringify(executor.osSandbox)}`);

async function run(code: string, language = "python"): Promise<string> {
  const result = await executor.executeCodeBlocks([{ language, code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
  return result.output;
}

async function startAndStop(options: WasmExecutorOptions): Promise<void> {
  await using other = new WasmCodeExecutor(options);
  await other.start();
}

/** Resident memory of this process and everything that it started, in bytes. */
async function residentBytes(): Promise<number> {
  const processes = await listProcesses();
  const family = new Set([process.pid]);
  // Children are found in the second round at the latest, and one round later in a sandbox, which adds a process in between.
  for (let round = 0; round < 3; round += 1) {
    for (const { pid, parent } of processes) if (family.has(parent)) family.add(pid);
  }
  let all = 0;
  for (const pid of family) {
    const text = await readFile(`/proc/${pid}/statm`, "utf8").catch(() => "");
    all += Number(text.split(" ")[1] ?? 0) * 4096;
  }
  return all;
}

async function growth(blocks: number, language: string, code: (block: number) => string): Promise<number> {
  for (let block = 0; block < 20; block += 1) await run(code(block), language);
  const before = await residentBytes();
  for (let block = 0; block < blocks; block += 1) await run(code(block), language);
  return ((await residentBytes()) - before) / 1e6;
}

report("WASM executor against Pyodide and QuickJS in this process", [
  {
    what: "start of Python from the snapshot",
    unit: "ms",
    ...(await byTurns(
      5,
      () => timed(async () => void (await loadPyodide())),
      () => timed(() => startAndStop({ languages: ["python"] })),
    )),
    goal: "at most 1 s",
  },
  {
    what: "start of Python with a package, against one without",
    unit: "ms",
    ...(await byTurns(
      5,
      () => timed(() => startAndStop({ languages: ["python"] })),
      () => timed(() => startAndStop({ languages: ["python"], packages: { wheels, install: ["packaging"] } })),
    )),
    goal: "at most 100 ms more",
  },
  {
    what: "start of JavaScript",
    unit: "ms",
    ...(await byTurns(
      5,
      () => timed(async () => (await QuickJS.create({ wasm: engine })).dispose()),
      () => timed(() => startAndStop({ languages: ["javascript"] })),
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
  {
    what: "javascript block, `console.log(1)`",
    unit: "ms",
    ...(await byTurns(
      50,
      () => timed(async () => void (await Promise.resolve(quickJs.evalCode("String(1)").toString()))),
      () => timed(async () => void (await run("console.log(1)", "javascript"))),
    )),
    goal: "at most 10 ms",
  },
  {
    what: "growth over 1,000 blocks of Python",
    unit: "MB",
    raw: [],
    ours: [await growth(1000, "python", (block) => `x = [${block}] * 1000\nprint(len(x))`)],
    goal: "at most 50 MB",
  },
  {
    what: "growth over 1,000 blocks of JavaScript",
    unit: "MB",
    raw: [],
    ours: [await growth(1000, "javascript", (block) => `const x = Array(1000).fill(${block}); console.log(x.length);`)],
    goal: "at most 50 MB",
  },
]);
