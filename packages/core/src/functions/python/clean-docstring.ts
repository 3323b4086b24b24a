/** A docstring, dedented and without blank lines around it, like Python's `inspect.cleandoc`. */
export function cleanDocstring(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  const margin = rest.reduce((least, line) => Math.min(least, indentOf(line)), Infinity);
  return [first.trimStart(), ...rest.map((line) => line.slice(margin))].join("\n").replace(/^\n+/, "").trimEnd();
}

/** Ignores blank lines. */
function indentOf(line: string): number {
  const content = line.trimStart();
  return content === "" ? Infinity : line.length - content.length;
}
