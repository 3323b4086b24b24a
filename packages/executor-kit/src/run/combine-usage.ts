import type { RunUsage } from "@fenced/core";

const sum = (one: number, other: number): number => one + other;
/** How to combine a figure of two blocks. */
const rules = { processorMs: sum, peakMemoryBytes: Math.max, receivedBytes: sum, sentBytes: sum } as const;
const figures = ["processorMs", "peakMemoryBytes", "receivedBytes", "sentBytes"] as const;

/**
 * What several blocks used together.
 *
 * @returns the figures that are known of each of them; `undefined` if there are none.
 */
export function combineUsage(blocks: readonly (RunUsage | undefined)[]): RunUsage | undefined {
  const known = figures.flatMap((figure) => {
    const values = blocks.flatMap((block) => block?.[figure] ?? []);
    if (values.length === 0 || values.length < blocks.length) return [];
    const combined = values.reduce((one, other) => rules[figure](one, other));
    // Sums of milliseconds have no more digits than what they are of.
    return [[figure, Math.round(combined * 1000) / 1000] as const];
  });
  return known.length === 0 ? undefined : Object.fromEntries(known);
}
