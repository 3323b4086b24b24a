const marks = /^(?:[ \t>]|[*+-][ \t]|\d{1,9}[.)][ \t])*/;

/** A fence that is still open. */
interface OpenFence {
  readonly char: string;
  readonly length: number;
}

/**
 * Fences that models close at the end of a line of code: `` print(1)``` ``. CommonMark reads the backticks as code.
 * Here they close the fence if nothing else does: no closing fence follows, or another fence opens first.
 */
export class GluedFences {
  readonly #lines: readonly string[];
  #closedAfter: readonly boolean[] | undefined;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  /** The line's code if it ends with the backticks that close the fence, otherwise `undefined`. */
  codeBefore(code: string, { char, length }: OpenFence, index: number): string | undefined {
    if (char !== "`" || length !== 3) return undefined;
    const text = code.trimEnd();
    let end = text.length;
    while (text[end - 1] === "`") end -= 1;
    const before = text.slice(0, end).trimEnd();
    if (text.length - end < 3 || isMarks(before)) return undefined;
    // A line with two fences, or with an escaped one, is text about fences.
    if (before.includes("```") || before.endsWith("\\")) return undefined;
    this.#closedAfter ??= closedAfter(this.#lines);
    return this.#closedAfter[index] === true ? undefined : before;
  }
}

/**
 * For each line: whether the next fence of at least three backticks below it, in a quote or list or not, is a closing
 * one.
 */
function closedAfter(lines: readonly string[]): boolean[] {
  const closed: boolean[] = [];
  let nextCloses = false;
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    closed[index] = nextCloses;
    const text = (lines[index] ?? "").replace(marks, "");
    if (text.startsWith("```")) {
      const info = text.replace(/^`+/, "");
      if (!info.includes("`")) nextCloses = info.trim() === "";
    }
  }
  return closed;
}

/** True if the text contains only the markers of quotes and lists. */
function isMarks(text: string): boolean {
  return `${text} `.replace(marks, "") === "";
}
