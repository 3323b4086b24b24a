/** A docstring, dedented and without blank lines around it, like Python's `inspect.cleandoc`. */
export function cleanDocstring(text: string): string {
  const [first = "", ...rest] = expandTabs(text).split("\n");
  const margin = rest.reduce((least, line) => Math.min(least, indentOf(line)), Number.POSITIVE_INFINITY);
  const lines = [first.trimStart(), ...rest.map((line) => line.slice(margin))];
  while (lines.at(-1)?.trim() === "") lines.pop();
  while (lines[0] === "") lines.shift();
  return lines.join("\n");
}

/** Ignores blank lines. */
function indentOf(line: string): number {
  const content = line.trimStart();
  return content === "" ? Number.POSITIVE_INFINITY : line.length - content.length;
}

function expandTabs(text: string): string {
  let column = 0;
  return text.replaceAll(/\t|\n|[^\t\n]+/g, (piece) => {
    const spaces = piece === "\t" ? " ".repeat(8 - (column % 8)) : piece;
    column = piece === "\n" ? 0 : column + Array.from(spaces).length;
    return spaces;
  });
}
