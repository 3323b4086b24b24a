import type { Paint } from "./terminal-colors.ts";

const fenceStart = /^ {0,3}(`{3,}|~{3,})/;
const maybeFenceStart = /^ {0,3}(`{0,3}|~{0,3})$/;

/** A line that begins with a fence. */
interface FenceLine {
  readonly char: string;
  length: number;
  /** True if the fence's marker may continue. */
  isOpen: boolean;
  /** True if text follows the marker. */
  hasInfo: boolean;
}

/**
 * Colours the fenced code of a Markdown text that arrives in pieces. Holds back the start of a line only while it may
 * still turn out to be a fence, and keeps nothing that was shown.
 */
export class MarkdownPainter {
  readonly #paint: Paint;
  /** The fence around the code that is being shown. */
  #fence: FenceLine | undefined;
  #heldBack = "";
  /** What the current line is, once known. */
  #line: FenceLine | "text" | undefined;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  /** Adds a piece of text and returns what can be shown now. */
  push(text: string): string {
    const parts = text.split("\n");
    const last = parts.pop() ?? "";
    const lines = parts.map((part) => `${this.#show(part)}${this.#endLine()}\n`);
    return lines.join("") + this.#show(last);
  }

  /** Ends the text and returns what was held back. */
  end(): string {
    return this.#endLine();
  }

  #show(piece: string): string {
    let shown = piece;
    if (this.#line === undefined) {
      shown = this.#heldBack + piece;
      if (maybeFenceStart.test(shown)) {
        this.#heldBack = shown;
        return "";
      }
      this.#beginLine(shown);
    } else if (this.#line !== "text") {
      extend(this.#line, piece);
    }
    return this.#painted(shown);
  }

  #beginLine(text: string): void {
    this.#heldBack = "";
    const mark = fenceStart.exec(text)?.[1];
    this.#line = mark === undefined ? "text" : { char: mark.charAt(0), length: 0, isOpen: true, hasInfo: false };
    if (this.#line !== "text") extend(this.#line, text.trimStart());
  }

  /** Ends the line and returns the part of it that was held back. */
  #endLine(): string {
    const rest = this.#heldBack;
    if (rest !== "") this.#beginLine(rest);
    const painted = this.#painted(rest);
    const line = this.#line;
    this.#line = undefined;
    if (line === undefined || line === "text") return painted;
    const closes = this.#fence?.char === line.char && line.length >= this.#fence.length && !line.hasInfo;
    if (this.#fence === undefined) this.#fence = line;
    else if (closes) this.#fence = undefined;
    return painted;
  }

  #painted(text: string): string {
    const isCode = this.#fence !== undefined || (this.#line !== undefined && this.#line !== "text");
    return this.#paint(isCode ? "code" : undefined, text);
  }
}

/** Adds a piece to a line that begins with a fence. */
function extend(line: FenceLine, piece: string): void {
  let index = 0;
  while (line.isOpen && piece[index] === line.char) index += 1;
  line.length += index;
  line.isOpen &&= index === piece.length;
  line.hasInfo ||= piece.slice(index).trim() !== "";
}
