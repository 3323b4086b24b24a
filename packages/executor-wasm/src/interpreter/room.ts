/** Room for more output: the host reads no more frames until there is some. */
export class Room {
  /** True once nobody reads the output any more: then never wait. */
  forGood = false;
  #wake: () => void = () => {};

  opens(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  open(): void {
    this.#wake();
  }

  openForGood(): void {
    this.forGood = true;
    this.#wake();
  }
}
