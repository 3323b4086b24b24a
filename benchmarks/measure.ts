/** Numbers of one thing that was measured, in milliseconds or MB. */
export interface Comparison {
  readonly what: string;
  readonly unit: "ms" | "MB";
  /** The raw floor: the same done without Fenced, in the same run. */
  readonly raw: readonly number[];
  readonly ours: readonly number[];
  /** What the project promises, for the reader. */
  readonly goal: string;
}

/** Measures two things by turns, so that a machine whose speed drifts is fair to both. */
export async function byTurns(
  rounds: number,
  raw: () => Promise<number>,
  ours: () => Promise<number>,
): Promise<{ raw: number[]; ours: number[] }> {
  const numbers = { raw: Array.of<number>(), ours: Array.of<number>() };
  // The first of each warms up caches and compilers and does not count.
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

/** By how many MB the process's resident memory grows, at most, while an action runs. */
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

/** The value that half of the numbers do not exceed. */
export function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

/** Prints a table of medians, with the ratio and the difference to the raw floor. */
export function report(title: string, comparisons: readonly Comparison[]): void {
  console.log(`\n${title} (medians; Node ${process.version})`);
  console.table(
    Object.fromEntries(
      comparisons.map(({ what, unit, raw, ours, goal }) => {
        const [floor, value] = [median(raw), median(ours)];
        const number = (each: number): string => `${each.toFixed(each < 10 ? 2 : 0)} ${unit}`;
        const row = { raw: number(floor), ours: number(value), ratio: (value / floor).toFixed(2) };
        return [what, { ...row, difference: number(value - floor), goal }];
      }),
    ),
  );
}
