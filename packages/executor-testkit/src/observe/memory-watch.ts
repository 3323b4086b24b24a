import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const sampleMs = 100;
/** Of the time, collecting takes at most one part of so many: what is watched must not wait for it. */
const shareOfTime = 5;

/**
 * Watches how much memory this process holds on to, beyond what it held before: what its garbage collector cannot free.
 *
 * @example
 * using memory = new MemoryWatch();
 * await executor.executeCodeBlocks(blocks);
 * assert.ok(memory.peak() < 10_000_000);
 */
export class MemoryWatch implements Disposable {
  readonly #collect: () => void;
  readonly #before: number;
  readonly #ended = new AbortController();
  #peak = 0;

  constructor() {
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("gc");
    // A runtime without a collector to call shows garbage as well, which only makes the check stricter.
    this.#collect = isCollector(collect) ? collect : () => {};
    this.#before = this.#held();
    void this.#watch().catch(() => {});
  }

  /** The most bytes, over those at the start, that were held at any time so far. */
  peak(): number {
    this.#sample();
    return this.#peak;
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#ended;
    for (let tookMs = 0; !signal.aborted;) {
      await sleep(Math.max(sampleMs, tookMs * shareOfTime), undefined, { signal, ref: false });
      const started = performance.now();
      this.#sample();
      tookMs = performance.now() - started;
    }
  }

  #sample(): void {
    // Collecting is slow, and finds no more than what is there before it.
    if (used() - this.#before > this.#peak) this.#peak = Math.max(this.#peak, this.#held() - this.#before);
  }

  #held(): number {
    // Buffers that are garbage are still counted after the first time: V8 frees them beside the program, and waits for it only here.
    this.#collect();
    this.#collect();
    return used();
  }
}

function used(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function isCollector(value: unknown): value is () => void {
  return typeof value === "function";
}
