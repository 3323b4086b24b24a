/** What `input()` in a Python kernel takes for the end of its input. */
const endOfInput = "\u0004";

/** A block's standard input, given out line by line. */
export class InputLines {
  readonly #text: string;
  #next = 0;

  /** @param text - `undefined`: closed. */
  constructor(text: string | undefined) {
    this.#text = text ?? "";
  }

  /** The next line without its end, or what says that there is none. */
  take(): string {
    if (this.#next >= this.#text.length) return endOfInput;
    const end = this.#text.indexOf("\n", this.#next);
    const line = this.#text.slice(this.#next, end === -1 ? undefined : end);
    this.#next = end === -1 ? this.#text.length : end + 1;
    return line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}
