import type { LineCursor } from "./line-cursor.ts";

/** Skips the marker of a list item, and returns the indentation of the item's lines. */
export function passListMarker(cursor: LineCursor, inParagraph: boolean): number | undefined {
  const marker = /^(?:[*+-]|(\d{1,9})[.)])(?=[ \t]|$)/.exec(cursor.rest);
  if (marker === null) return undefined;
  const [{ length }, number] = marker;
  // Only a list that begins with 1 and has text can interrupt a paragraph.
  const beginsLate = number !== undefined && Number(number) !== 1;
  if (inParagraph && (beginsLate || cursor.rest.slice(length).trim() === "")) return undefined;

  const markerIndent = cursor.indent;
  cursor.skipPast(length);
  // Text that is indented further is code in the item.
  const padding = cursor.blank || cursor.indent >= 5 ? 1 : cursor.indent;
  cursor.skipIndent(padding);
  return markerIndent + length + padding;
}

/**
 * Finds where in a line `***`, `- - -` or `___` can begin; searches only once, however many list markers come first.
 */
export class ThematicBreak {
  readonly #cursor: LineCursor;
  #found: { readonly char: string; readonly from: number; readonly to: number } | undefined;

  constructor(cursor: LineCursor) {
    this.#cursor = cursor;
  }

  /** True if only three or more of one marker follow from `offset` on. */
  startsAt(offset: number): boolean {
    if (!"*-_".includes(this.#cursor.char || " ")) return false;
    this.#found ??= lastMarks(this.#cursor.rest, offset);
    return this.#cursor.char === this.#found.char && offset >= this.#found.from && offset <= this.#found.to;
  }
}

/**
 * The last marker of a line, the offset from which only it and white space follow, and the offset of its third last
 * occurrence.
 */
function lastMarks(
  rest: string,
  offset: number,
): { readonly char: string; readonly from: number; readonly to: number } {
  const trimmed = rest.replace(/[ \t]+$/, "");
  const char = trimmed.at(-1) ?? "";
  let from = trimmed.length;
  let to = -1;
  let count = 0;
  for (; from > 0 && [char, " ", "\t"].includes(trimmed.charAt(from - 1)); from -= 1) {
    if (trimmed[from - 1] !== char) continue;
    count += 1;
    if (count === 3) to = offset + from - 1;
  }
  return { char, from: offset + from, to };
}
