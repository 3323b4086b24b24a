/** The longest last mark, in bytes. */
const longestMark = 8192;
const longestNoise = 1000;

/**
 * Takes what stands between the first and the last mark out of a stream that is cut anywhere. A mark is a line of its own
 * end: a control character, `fenced-`, a number that is used once, a colon, a word or more.
 */
export class MarkedStream {
  readonly #mark: Buffer;
  #state: "before" | "inside" | "after" = "before";
  #rest: Buffer = Buffer.alloc(0);
  #ending: string | undefined;
  #noise = "";

  constructor(nonce: string) {
    this.#mark = Buffer.from(`\u001Efenced-${nonce}:`);
  }

  /** Whether the first mark has come. */
  get begun(): boolean {
    return this.#state !== "before";
  }

  /** The end of what came before the first mark, such as the words of a login shell. */
  get noise(): string {
    return this.#noise;
  }

  /** What the last mark says; `undefined`: it has not come. */
  get ending(): string | undefined {
    return this.#ending;
  }

  /** The pieces of `bytes`, and of what was kept of those before, that are output. */
  push(bytes: Buffer): readonly Buffer[] {
    if (this.#state === "after") return [];
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = Buffer.alloc(0);
    const pieces: Buffer[] = [];
    for (;;) {
      const start = rest.indexOf(this.#mark);
      const end = start === -1 ? -1 : rest.indexOf("\n", start);
      const upTo = start === -1 ? rest.length - this.#unfinished(rest) : start;
      const piece = rest.subarray(0, upTo);
      if (this.#state === "before") this.#noise = (this.#noise + piece.toString()).slice(-longestNoise);
      else if (upTo > 0) pieces.push(piece);
      if (end === -1) {
        this.#keep(rest.subarray(upTo));
        return pieces;
      }
      const known = this.#take(rest.toString("utf8", start + this.#mark.length, end));
      if (!known && this.#state === "inside") pieces.push(rest.subarray(start, end + 1));
      rest = rest.subarray(end + 1);
      if (this.ending !== undefined) return pieces;
    }
  }

  /** @returns false for what only looks like a mark. */
  #take(words: string): boolean {
    if (words === "begin") this.#state = "inside";
    else if (/^exit \d{1,3}$|^refused /.test(words)) [this.#state, this.#ending] = ["after", words];
    else return false;
    return true;
  }

  #keep(bytes: Buffer): void {
    if (bytes.length <= longestMark) this.#rest = Buffer.from(bytes);
  }

  /** How many bytes at the end may begin a mark. */
  #unfinished(bytes: Buffer): number {
    const last = bytes.lastIndexOf(this.#mark.subarray(0, 1));
    if (last === -1 || last + this.#mark.length <= bytes.length) return 0;
    const tail = bytes.subarray(last);
    return tail.equals(this.#mark.subarray(0, tail.length)) ? tail.length : 0;
  }
}
