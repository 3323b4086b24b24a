import type { Paint } from "./terminal-colors.ts";

const fenceLine = /^ {0,3}(`{3,}|~{3,})/;
const maybeFenceStart = /^ {0,3}(`{0,3}|~{0,3})$/;

/**
 * Colours the fenced code of a Markdown text that comes in pieces. The beginning of a line is held back only while it
 * may still turn out to be a fence.
 */
export class MarkdownPainter {
  readonly #paint: Paint;
  #fence: string | undefined;
  #line = "";
  #shown = 0;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  /** Adds a piece of text and returns what can be shown now. */
  push(text: string): string {
    const parts = text.split("\n");
    const last = parts.pop() ?? "";
    const lines = parts.map((part) => `${this.#extend(part, true)}\n`);
    return lines.join("") + this.#extend(last, false);
  }

  /** The text is complete: returns what was held back. */
  end(): string {
    const rest = this.#show();
    this.#startLine();
    return rest;
  }

  #extend(text: string, complete: boolean): string {
    this.#line += text;
    if (!complete) return maybeFenceStart.test(this.#line) ? "" : this.#show();
    const shown = this.#show();
    this.#closeOrOpenFence();
    this.#startLine();
    return shown;
  }

  #show(): string {
    const text = this.#line.slice(this.#shown);
    this.#shown = this.#line.length;
    const isFence = fenceLine.test(this.#line);
    return this.#paint(this.#fence === undefined && !isFence ? undefined : "code", text);
  }

  #startLine(): void {
    this.#line = "";
    this.#shown = 0;
  }

  #closeOrOpenFence(): void {
    const fence = fenceLine.exec(this.#line)?.[1];
    if (fence === undefined) return;
    if (this.#fence === undefined) this.#fence = fence;
    else if (fence.startsWith(this.#fence) && this.#line.trim() === fence) this.#fence = undefined;
  }
}
