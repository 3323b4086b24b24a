import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const sampleMs = 100;

/** Watches how much memory this process holds on to, beyond what it held before. */
export class MemoryWatch implements Disposable {
  readonly #collect: () => void;
  readonly #before: number;
  readonly #timer: NodeJS.Timeout;
  #peak = 0;

  constructor() {
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("gc");
    // A runtime without a collector to call shows garbage as well, which only makes the check stricter.
    this.#collect = isCollector(collect) ? collect : () => {};
    this.#before = this.#held();
    this.#timer = setInterval(() => this.#sample(), sampleMs);
  }

  /** The most bytes, over those at the start, that were held at any time so far. */
  peak(): number {
    this.#sample();
    return this.#peak;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    this.#peak = Math.max(this.#peak, this.#held() - this.#before);
  }

  #held(): number {
    this.#collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  }
}

function isCollector(value: unknown): value is () => void {
  return typeof value === "function";
}
