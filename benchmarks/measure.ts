import { appendFileSync } from "node:fs";

/** The numbers of one measurement, in milliseconds or MB. */
export interface Comparison {
  readonly what: string;
  readonly unit: "ms" | "MB";
  /** The raw floor: the same done without Fenced, in the same run. Empty if there is none. */
  readonly raw: readonly number[];
  readonly ours: readonly number[];
  /** The project's goal, for the reader. */
  readonly goal: string;
}

/** Measures two actions alternately, so that a drift in the machine's speed affects both equally. */
export async function byTurns(
  rounds: number,
  raw: () => Promise<number>,
  ours: () => Promise<number>,
): Promise<{ raw: number[]; ours: number[] }> {
  const numbers = { raw: Array.of<number>(), ours: Array.of<number>() };
  // The first run of each warms up caches and compilers and does not count.
  await raw();
  await ours();
  for (let round = 0; round < rounds; round += 1) {
    numbers.raw.push(await raw());
    numbers.ours.push(await ours());
  }
  return numbers;
}

/** Milliseconds that an action takes. */
export async function timed(action: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await action();
  return performance.now() - started;
}

/** The peak growth of the process's resident memory while an action runs, in MB. */
export async function memoryGrowth(action: () => Promise<unknown>): Promise<number> {
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  try {
    await action();
  } finally {
    clearInterval(watch);
  }
  return (peak - before) / 1e6;
}

export function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

/** A row of the table of `pnpm bench`. */
export interface Row extends Comparison {
  /** What is measured against what. */
  readonly title: string;
}

/** Where `pnpm bench` collects rows, one JSON value a line; unset if the benchmark runs alone. */
const collection = process.env["FENCED_BENCH_ROWS"];

/** Passes the rows to `pnpm bench`, or prints them as a table. */
export function report(title: string, comparisons: readonly Comparison[]): void {
  const rows = comparisons.map((comparison): Row => ({ title, ...comparison }));
  if (collection === undefined) console.log(formatTable(rows));
  else appendFileSync(collection, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
}

/** A table of medians, with the ratio and the difference to the raw floor. */
export function formatTable(rows: readonly Row[]): string {
  const lines: string[][] = [["benchmark", "raw floor", "ours", "ratio", "difference", "goal"]];
  for (const [index, row] of rows.entries()) {
    if (rows[index - 1]?.title !== row.title) lines.push([row.title]);
    lines.push(cellsOf(row));
  }
  const widths = [0, 1, 2, 3, 4].map((column) =>
    Math.max(...lines.map((line) => (line.length === 1 ? 0 : (line[column]?.length ?? 0)))),
  );
  return lines.map((line) => formatLine(line, widths)).join("\n");
}

function cellsOf({ what, unit, raw, ours, goal }: Row): string[] {
  const [floor, value] = [median(raw), median(ours)];
  // A ratio to a tiny floor means nothing, so memory growth is compared by difference.
  const ratio = unit === "MB" || raw.length === 0 ? "" : (value / floor).toFixed(2);
  return [
    `  ${what}`,
    formatNumber(floor, unit),
    formatNumber(value, unit),
    ratio,
    formatNumber(value - floor, unit),
    goal,
  ];
}

function formatLine(line: readonly string[], widths: readonly number[]): string {
  const [first = "", ...others] = line;
  if (others.length === 0) return `\n${first}`;
  const columns = others.map((cell, index) => (index < 4 ? cell.padStart(widths[index + 1] ?? 0) : cell));
  return [first.padEnd(widths[0] ?? 0), ...columns].join("  ").trimEnd();
}

function formatNumber(value: number, unit: string): string {
  return Number.isNaN(value) ? "" : `${value.toFixed(Math.abs(value) < 10 ? 2 : 0)} ${unit}`;
}
