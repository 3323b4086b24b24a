/**
 * Runs the benchmarks one after another: all of them, or those whose file names contain one of the arguments. Prints one table
 * and writes all numbers as JSON, to `benchmarks/results.json` or to the file in `--json FILE`. A benchmark names the backends
 * that it needs, as examples do, and is skipped if one is missing.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { formatTable, median, type Row } from "../benchmarks/measure.ts";
import { needsOf } from "./example-needs.ts";
import { sourceFiles } from "./source-files.ts";
import { commandLine } from "./workspace.mjs";

const folder = join(import.meta.dirname, "..", "benchmarks");
const { values, positionals } = commandLine({ options: { json: { type: "string" } }, allowPositionals: true });
const target = resolve(values.json ?? join(folder, "results.json"));
const temporary = mkdtempSync(join(tmpdir(), "fenced-bench-"));
const collection = join(temporary, "rows.jsonl");
const skipped: { readonly benchmark: string; readonly reason: string }[] = [];
const failed: string[] = [];
const startedAt = new Date();
const loadBefore = loadavg();

try {
  writeFileSync(collection, "");
  const benchmarks = sourceFiles(folder).filter((file) => file !== "measure.ts" && isWanted(file));
  if (benchmarks.length === 0) throw new Error(`No benchmark's name contains ${positionals.join(" or ")}.`);
  for (const file of benchmarks) runBenchmark(file);
  const rows = readFileSync(collection, "utf8").split("\n").filter(Boolean).map(parseRow);
  printResults(rows);
  writeResults(rows);
} finally {
  rmSync(temporary, { recursive: true });
}

function isWanted(file: string): boolean {
  return positionals.length === 0 || positionals.some((part) => file.includes(part));
}

function runBenchmark(file: string): void {
  const benchmark = file.replace(/\.ts$/, "");
  const { missing, required } = needsOf(readFileSync(join(folder, file), "utf8"));
  if (missing.length > 0) {
    if (required) fail(`${benchmark}: it needs ${missing.join(", ")}`);
    else skipped.push({ benchmark, reason: `needs ${missing.join(", ")}` });
    return;
  }
  console.log(`measuring ${benchmark} ...`);
  const { status, signal } = spawnSync(
    process.execPath,
    [
      "--disable-warning=FENCED_LOCAL",
      "--expose-gc",
      "--import",
      "tsx",
      "--conditions=@fenced/source",
      join(folder, file),
    ],
    { stdio: "inherit", cwd: folder, env: { ...process.env, FENCED_BENCH_ROWS: collection } },
  );
  if (status !== 0) fail(`${benchmark}: exit code ${String(status ?? signal)}`);
}

function fail(reason: string): void {
  process.exitCode = 1;
  failed.push(reason);
}

function parseRow(line: string): Row {
  // What `report` of this repository has just written.
  return JSON.parse(line) as Row;
}

function printResults(rows: readonly Row[]): void {
  const { node, cores, loadAverage } = machine();
  console.log(
    `\nMedians; Node ${node}, ${cores} cores, load ${loadAverage.before[0]} before, ${loadAverage.after[0]} after\n`,
  );
  if (rows.length > 0) console.log(formatTable(rows));
  for (const { benchmark, reason } of skipped) console.log(`\nskipped ${benchmark}: ${reason}`);
  for (const failure of failed) console.log(`\nFAILED  ${failure}`);
}

function writeResults(rows: readonly Row[]): void {
  const results = rows.map(({ title, what, unit, raw, ours, goal }) => ({
    title,
    what,
    unit,
    raw: summary(raw),
    ours: summary(ours),
    ratio: raw.length === 0 ? null : median(ours) / median(raw),
    difference: raw.length === 0 ? null : median(ours) - median(raw),
    goal,
  }));
  writeFileSync(target, `${JSON.stringify({ machine: machine(), results, skipped, failed }, undefined, 2)}\n`);
  console.log(`\nAll numbers: ${target}`);
}

function summary(numbers: readonly number[]) {
  if (numbers.length === 0) return null;
  return { median: median(numbers), least: Math.min(...numbers), most: Math.max(...numbers), all: numbers };
}

function machine() {
  const processors = cpus();
  const rounded = (loads: readonly number[]): number[] => loads.map((load) => Number(load.toFixed(2)));
  return {
    date: startedAt.toISOString(),
    seconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cores: processors.length,
    processor: processors[0]?.model ?? "unknown",
    memoryBytes: totalmem(),
    loadAverage: { before: rounded(loadBefore), after: rounded(loadavg()) },
  };
}
