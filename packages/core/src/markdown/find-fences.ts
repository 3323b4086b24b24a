import { GluedFences } from "./glued-fences.ts";

/** A fence in a Markdown text. */
export interface RawFence {
  /** The text after the opening fence, unchanged. */
  readonly info: string;
  /** The lines of code. */
  readonly lines: readonly string[];
  /** True if there is a closing fence. */
  readonly closed: boolean;
}

interface OpenFence extends RawFence {
  readonly char: string;
  readonly length: number;
  /** The number of quotes around it: each of its lines begins with as many marks. */
  readonly quotes: number;
  /** Columns between the quotes and the opening fence; as many are removed from each line of code. */
  readonly indent: number;
  readonly lines: string[];
  closed: boolean;
}

const tabWidth = 4;
/** How much further than the opening fence the closing one may be indented. */
const mostIndent = 3;
const quoteMark = /[ \t]*>[ \t]?/y;
const listMark = /[ \t]*(?:[*+-]|\d{1,9}[.)])(?=[ \t])/y;
const fence = /^[ \t]*(`{3,}|~{3,})(.*)$/s;

/**
 * Finds the fences of a Markdown text, closed or not, in the order in which they open. The time is linear in the text's
 * length.
 */
export function findRawFences(markdown: string): RawFence[] {
  const lines = markdown
    .replace(/^\uFEFF/, "")
    .replaceAll("\0", "\uFFFD")
    .split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  const glued = new GluedFences(lines);
  const found: OpenFence[] = [];
  let open: OpenFence | undefined;
  for (const [index, line] of lines.entries()) {
    const content = open && afterQuotes(line, open.quotes);
    if (open === undefined || content === undefined) {
      open = startFence(line);
      if (open) found.push(open);
      continue;
    }
    open.closed = isClosing(content, open);
    if (!open.closed) {
      const code = dedent(content, open.indent);
      const beforeFence = glued.codeBefore(code, open, index);
      open.closed = beforeFence !== undefined;
      open.lines.push(beforeFence ?? code);
    }
    if (open.closed) open = undefined;
  }
  return found;
}

/** The line after the marks of this many quotes; `undefined` if it has fewer. */
function afterQuotes(line: string, quotes: number): string | undefined {
  let end = 0;
  for (let count = 0; count < quotes; count += 1) {
    quoteMark.lastIndex = end;
    if (!quoteMark.test(line)) return undefined;
    end = quoteMark.lastIndex;
  }
  return line.slice(end);
}

/** The fence that opens on this line, in quotes and list items or not. */
function startFence(line: string): OpenFence | undefined {
  let [quotes, start, end] = [0, 0, 0];
  for (;;) {
    quoteMark.lastIndex = listMark.lastIndex = end;
    if (quoteMark.test(line)) {
      quotes += 1;
      start = end = quoteMark.lastIndex;
    } else if (listMark.test(line)) end = listMark.lastIndex;
    else break;
  }
  const [, marks = "", info = ""] = fence.exec(line.slice(end)) ?? [];
  // Backticks that are followed by others on the same line are inline code.
  if (marks === "" || (marks.startsWith("`") && info.includes("`"))) return undefined;
  const indent = columnsOf(line.slice(start, line.length - marks.length - info.length));
  return { char: marks.charAt(0), length: marks.length, quotes, indent, info: info.trim(), lines: [], closed: false };
}

function isClosing(content: string, { char, length, indent }: OpenFence): boolean {
  const [, marks = "", rest = ""] = fence.exec(content) ?? [];
  if (!marks.startsWith(char) || marks.length < length || rest.trim() !== "") return false;
  return columnsOf(content.slice(0, content.indexOf(char))) <= indent + mostIndent;
}

function columnsOf(text: string): number {
  let columns = 0;
  for (const char of text) columns += widthAt(columns, char);
  return columns;
}

/** Removes up to this many columns of white space. Of a tab that reaches further, the rest remains as spaces. */
function dedent(line: string, columns: number): string {
  let [column, offset] = [0, 0];
  for (let char = line[0]; column < columns && (char === " " || char === "\t"); char = line[offset]) {
    column += widthAt(column, char);
    offset += 1;
  }
  return " ".repeat(Math.max(0, column - columns)) + line.slice(offset);
}

function widthAt(column: number, char: string): number {
  return char === "\t" ? tabWidth - (column % tabWidth) : 1;
}
