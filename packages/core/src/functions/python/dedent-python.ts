import type { PythonToken } from "./python-token.ts";

/** Dedented source, and the mapping back to the original text. */
export interface DedentedPython {
  readonly source: string;
  /** The offset in the given text for an offset in the source. */
  readonly originalOffset: (offset: number) => number;
}

/**
 * Dedents an indented source and removes the blank lines around it; the first line of code determines by how much. A
 * multi-line string is dedented, too, unless one of its lines starts further left: then its text was not indented with
 * the block and stays unchanged.
 *
 * @param text - with `\n` line endings only.
 * @param tokens - of this text.
 */
export function dedentPython(text: string, tokens: readonly PythonToken[]): DedentedPython {
  const lines = text.split("\n");
  const starts = lineStarts(lines);
  const margin = marginOf(text, tokens[0]?.from ?? 0);
  const fixed = linesThatStay(lines, starts, margin, tokens);
  const cuts = lines.map((line, index) => (fixed.has(index) ? 0 : commonLength(line, margin)));
  const blank = (index: number): boolean => (lines[index] ?? "").trim() === "";
  let [first, end] = [0, lines.length];
  while (first < end && blank(first)) first += 1;
  while (end > first && blank(end - 1)) end -= 1;
  const kept = lines.slice(first, end).map((line, index) => line.slice(cuts[first + index]));
  return { source: kept.join("\n"), originalOffset: originalOffset(kept, starts.slice(first), cuts.slice(first)) };
}

function originalOffset(
  kept: readonly string[],
  starts: readonly number[],
  cuts: readonly number[],
): (offset: number) => number {
  return (offset) => {
    let [line, column] = [0, offset];
    while (line < kept.length - 1 && column > (kept[line] ?? "").length) {
      column -= (kept[line] ?? "").length + 1;
      line += 1;
    }
    return (starts[line] ?? 0) + (cuts[line] ?? 0) + column;
  };
}

function lineStarts(lines: readonly string[]): number[] {
  let start = 0;
  return lines.map((line) => {
    const own = start;
    start += line.length + 1;
    return own;
  });
}

function marginOf(text: string, offset: number): string {
  return text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
}

/** The lines of strings whose text is not indented with the block. */
function linesThatStay(
  lines: readonly string[],
  starts: readonly number[],
  margin: string,
  tokens: readonly PythonToken[],
): ReadonlySet<number> {
  const stay = new Set<number>();
  let line = 0;
  for (const { kind, from, to, text } of tokens) {
    if (kind !== "string" || !text.includes("\n")) continue;
    while ((starts[line + 1] ?? Number.POSITIVE_INFINITY) <= from) line += 1;
    const inside: number[] = [];
    for (let next = line + 1; (starts[next] ?? Number.POSITIVE_INFINITY) < to; next += 1) inside.push(next);
    const keepsMargin = (index: number): boolean => {
      const content = lines[index] ?? "";
      return content.startsWith(margin) || content.trim() === "";
    };
    if (!inside.every(keepsMargin)) for (const index of inside) stay.add(index);
  }
  return stay;
}

/** How much of the margin a line has; comments and blank lines may have less than all of it. */
function commonLength(line: string, margin: string): number {
  let length = 0;
  while (length < margin.length && line[length] === margin[length]) length += 1;
  return length;
}
