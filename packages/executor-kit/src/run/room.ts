/** Room for what a sink takes: all writers that find none wait for the same promise. */
export class Room {
  #opened: Promise<void> | undefined;
  #open: (() => void) | undefined;

  /** Resolves at the next `open`. */
  get opened(): Promise<void> {
    return (this.#opened ??= new Promise((resolve) => {
      this.#open = resolve;
    }));
  }

  /** Lets those continue that wait now. */
  open(): void {
    this.#open?.();
    this.#opened = undefined;
    this.#open = undefined;
  }
}
