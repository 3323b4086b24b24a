const tabWidth = 4;

/** A position in a line of Markdown, in characters and in columns: a tab reaches to the next multiple of four. */
export class LineCursor {
  readonly #text: string;
  #offset = 0;
  #column = 0;
  #next = 0;
  #nextColumn = 0;
  #insideTab = false;

  constructor(text: string) {
    this.#text = text;
    this.#findNext();
  }

  /** Columns of white space before the next other character. */
  get indent(): number {
    return this.#nextColumn - this.#column;
  }

  /** Four columns of indentation turn what would otherwise begin a block into code. */
  get indented(): boolean {
    return this.indent >= tabWidth;
  }

  /** Only white space is left. */
  get blank(): boolean {
    return this.#next === this.#text.length;
  }

  /** The offset of the next non-white-space character. */
  get next(): number {
    return this.#next;
  }

  /** The next non-white-space character; an empty string at the end. */
  get char(): string {
    return this.#text.charAt(this.#next);
  }

  /** The line from the next non-white-space character on. */
  get rest(): string {
    return this.#text.slice(this.#next);
  }

  /** The line from here on; a partly consumed tab counts as the spaces that are left of it. */
  get remaining(): string {
    if (!this.#insideTab) return this.#text.slice(this.#offset);
    return " ".repeat(tabWidth - (this.#column % tabWidth)) + this.#text.slice(this.#offset + 1);
  }

  /** Skips white space, and then `count` other characters. */
  skipPast(count: number): void {
    this.#offset = this.#next + count;
    this.#column = this.#nextColumn + count;
    this.#insideTab = false;
    this.#findNext();
  }

  /** Skips up to `columns` of white space. */
  skipIndent(columns: number): void {
    let left = Math.min(columns, this.indent);
    while (left > 0) {
      const width = this.#text[this.#offset] === "\t" ? tabWidth - (this.#column % tabWidth) : 1;
      this.#insideTab = width > left;
      if (!this.#insideTab) this.#offset += 1;
      this.#column += Math.min(width, left);
      left -= width;
    }
  }

  #findNext(): void {
    this.#next = this.#offset;
    this.#nextColumn = this.#column;
    for (; ; this.#next += 1) {
      const char = this.#text[this.#next];
      if (char === "\t") this.#nextColumn += tabWidth - (this.#nextColumn % tabWidth);
      else if (char === " ") this.#nextColumn += 1;
      else return;
    }
  }
}
