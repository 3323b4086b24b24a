/** Limits how many of a block's calls run at a time; others wait in order. */
export class CallSlots {
  readonly #waiting: ((free: boolean) => void)[] = [];
  #free: number;
  #closed = false;

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot; `false` if there will be no more. */
  async take(): Promise<boolean> {
    if (this.#closed) return false;
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next) next(true);
    else this.#free += 1;
  }

  close(): void {
    this.#closed = true;
    for (const refuse of this.#waiting.splice(0)) refuse(false);
  }
}
