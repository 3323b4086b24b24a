/** What `input()` in a Python kernel takes for the end of its input. Others know no such thing: they get an empty line. */
const endOfInput = "\u0004";

/** A block's standard input, given out line by line. */
export class InputLines {
  readonly #text: string;
  readonly #end: string;
  #next = 0;

  /**
   * @param text - `undefined`: closed.
   * @param language - that of the kernel.
   */
  constructor(text: string | undefined, language: string) {
    this.#text = text ?? "";
    this.#end = language === "python" ? endOfInput : "";
  }

  /** The next line without its end, or what says that there is none. */
  take(): string {
    if (this.#next >= this.#text.length) return this.#end;
    const end = this.#text.indexOf("\n", this.#next);
    const line = this.#text.slice(this.#next, end === -1 ? undefined : end);
    this.#next = end === -1 ? this.#text.length : end + 1;
    return line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}
