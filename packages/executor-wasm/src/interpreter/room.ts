/** Room for more output; reading the process's frames waits for it. */
export class Room {
  /** Nobody reads any more: take what arrives without waiting. */
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
