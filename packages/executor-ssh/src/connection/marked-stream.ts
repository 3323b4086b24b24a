/** Maximum length of a mark in bytes. */
const longestMark = 8192;
const longestNoise = 1000;

/**
 * Extracts the output between the first and the last mark of a stream, which may be split anywhere. A mark ends its line
 * and consists of a control character, `fenced-`, a nonce, a colon and one or more words.
 */
export class MarkedStream {
  readonly #mark: Buffer;
  #rest: Buffer = Buffer.alloc(0);
  /** Whether the first mark has arrived. */
  begun = false;
  /** The process that the first mark names: the leader of the program's session. */
  leader: number | undefined;
  /** What the last mark says; `undefined` until it arrives. */
  ending: string | undefined;
  /** Whether a mark says that the program has closed its input. */
  inputClosed = false;
  /** The end of the output before the first mark, such as a login shell's greeting. */
  noise = "";

  constructor(nonce: string) {
    this.#mark = Buffer.from(`\u001Efenced-${nonce}:`);
  }

  /** The output in `bytes` and in the bytes kept from earlier calls. */
  push(bytes: Buffer): readonly Buffer[] {
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = Buffer.alloc(0);
    const pieces: Buffer[] = [];
    while (this.ending === undefined && rest.length > 0) {
      const start = this.#startOfMark(rest);
      this.#put(rest.subarray(0, start), pieces);
      rest = rest.subarray(start);
      const end = rest.indexOf("\n");
      if (end === -1 && rest.length <= longestMark) {
        this.#rest = Buffer.from(rest);
        break;
      }
      const line = rest.subarray(0, end === -1 ? rest.length : end + 1);
      if (!this.#take(line.toString("utf8", this.#mark.length, line.length - 1))) this.#put(line, pieces);
      rest = rest.subarray(line.length);
    }
    return pieces;
  }

  #put(output: Buffer, pieces: Buffer[]): void {
    if (output.length === 0) return;
    if (this.begun) pieces.push(output);
    else this.noise = (this.noise + output.toString()).slice(-longestNoise);
  }

  /** @returns false for text that only looks like a mark. */
  #take(words: string): boolean {
    const begin = /^begin(?: (?<leader>\d{1,9}))?$/.exec(words);
    if (begin && !this.begun) {
      this.begun = true;
      const leader = begin.groups?.["leader"];
      this.leader = leader === undefined ? undefined : Number(leader);
      return true;
    }
    if (words === "unread") {
      this.inputClosed = true;
      return true;
    }
    if (!/^exit \d{1,3}$|^refused /.test(words)) return false;
    this.ending = words;
    return true;
  }

  /** Where a mark begins, or where one may begin at the end of the bytes so far; otherwise the length. */
  #startOfMark(bytes: Buffer): number {
    const start = bytes.indexOf(this.#mark);
    if (start !== -1) return start;
    const last = bytes.lastIndexOf(this.#mark.subarray(0, 1));
    if (last === -1 || last + this.#mark.length <= bytes.length) return bytes.length;
    const tail = bytes.subarray(last);
    return tail.equals(this.#mark.subarray(0, tail.length)) ? last : bytes.length;
  }
}
