import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const sampleMs = 100;
/**
 * Garbage collection takes at most one in this many parts of the time, so that it does not slow down what is being
 * watched.
 */
const shareOfTime = 5;

/**
 * Measures how much more memory this process retains than at the start, without garbage.
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
    // Without a callable garbage collector, garbage counts as well, which only makes the check stricter.
    this.#collect = isCollector(collect) ? collect : () => {};
    this.#before = this.#held();
    void this.#watch().catch(() => {});
  }

  /** The largest number of bytes retained so far, beyond those at the start. */
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
    // Collecting is slow, and can only lower the number.
    if (used() - this.#before > this.#peak) this.#peak = Math.max(this.#peak, this.#held() - this.#before);
  }

  #held(): number {
    // After the first collection, garbage buffers still count: V8 frees them in the background, and waits for that only
    // here.
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
