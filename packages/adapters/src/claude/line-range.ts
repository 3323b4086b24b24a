import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import { ByteQueue } from "@fenced/core";

const lineEnd = 10;

interface LineRangeParts {
  readonly path: string;
  /** The first line, counted from 1. */
  readonly start: number;
  /** The last line; the file's last one if it is not above 0. */
  readonly end: number;
  readonly maxBytes: number;
}

/** Collects some lines of a file of any size, whose bytes arrive in pieces. */
export class LineRange {
  readonly #parts: LineRangeParts;
  readonly #first: number;
  readonly #end: number;
  readonly #bytes = new ByteQueue();
  #line = 0;

  constructor(parts: LineRangeParts) {
    this.#parts = parts;
    this.#first = Math.max(0, parts.start - 1);
    this.#end = parts.end > 0 ? parts.end : Infinity;
  }

  /** Whether what follows is not needed. */
  get isComplete(): boolean {
    return this.#line >= this.#end || this.#end <= this.#first;
  }

  /** @throws ToolError if the lines are too long. */
  add(piece: Uint8Array): void {
    let from = 0;
    while (from < piece.length && !this.isComplete) {
      const found = piece.indexOf(lineEnd, from);
      const isEnd = found !== -1;
      const to = isEnd ? found : piece.length;
      // The last line is without its end.
      const upTo = isEnd && this.#line + 1 < this.#end ? to + 1 : to;
      if (this.#line >= this.#first) this.#collect(piece.subarray(from, upTo));
      if (isEnd) this.#line += 1;
      from = to + 1;
    }
  }

  text(): string {
    return Buffer.from(this.#bytes.take()).toString();
  }

  #collect(bytes: Uint8Array): void {
    const { path, start, end, maxBytes } = this.#parts;
    if (this.#bytes.length + bytes.length > maxBytes) {
      throw new ToolError(
        this.#end - this.#first === 1
          ? `read: line ${this.#first + 1} of ${path} alone exceeds ${maxBytes}-byte limit. The read tool cannot return part of a line, so view_range cannot narrow this further.`
          : `read: view_range [${start}, ${end}] of ${path} exceeds ${maxBytes}-byte limit. Narrow the view_range to read a smaller portion.`,
      );
    }
    this.#bytes.add(bytes);
  }
}
