import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/** A way to a session that a test can break. */
export interface Breakable {
  /** Breaks its connections; returns how many there were. */
  cut(): number;
  /** Whether there is a connection again. */
  isBack(): boolean;
}

/**
 * Breaks the connections again and again until something has settled; returns how often.
 *
 * @param mostPauseMs - the longest pause between two cuts.
 */
export async function cutUntil(settled: Promise<unknown>, way: Breakable, mostPauseMs = 200): Promise<number> {
  const outcomes = new Set<string>();
  const over = settled.then(
    () => outcomes.add("done"),
    () => outcomes.add("failed"),
  );
  const hasEnded = (): boolean => outcomes.size > 0;
  let cuts = 0;
  while (cuts < 10) {
    await Promise.race([over, sleep(randomInt(10, mostPauseMs))]);
    if (hasEnded()) break;
    cuts += way.cut();
    // A busy machine takes a second to connect again, and the work goes on only while it is connected.
    while (!hasEnded() && !way.isBack()) await sleep(5);
  }
  await over;
  return cuts;
}

/** A Python program that prints numbered lines, a few at a time. */
export function printNumbers(count: number): string {
  return `import time\nfor i in range(${count}):\n    print(i, flush=i % 50 == 0)\n    if i % 50 == 0: time.sleep(0.01)`;
}

/** What it prints. */
export function numberLines(count: number): string {
  return Array.from({ length: count }, (_, index) => `${index}\n`).join("");
}
