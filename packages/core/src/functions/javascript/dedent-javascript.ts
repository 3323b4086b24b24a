import type { JavaScriptStructure } from "./javascript-structure.ts";

/**
 * Dedents the lines of a function, except the first, by what they have in common. Lines inside template literals are
 * content and stay unchanged.
 */
export function dedentJavaScript(structure: JavaScriptStructure): string {
  const [first = "", ...rest] = structure.text.split("\n");
  const fixed = linesInsideLiterals(structure);
  const movable = rest.filter((line, index) => !fixed.has(index + 1) && line.trim() !== "");
  const margin = movable.reduce<string | undefined>(commonIndent, undefined) ?? "";
  const moved = rest.map((line, index) => {
    const moves = line.startsWith(margin) && !fixed.has(index + 1);
    return moves ? line.slice(margin.length) : line;
  });
  return [first, ...moved].join("\n");
}

function commonIndent(common: string | undefined, line: string): string {
  const indent = /^[ \t]*/.exec(line)?.[0] ?? "";
  if (common === undefined) return indent;
  let length = 0;
  while (length < common.length && common[length] === indent[length]) length += 1;
  return common.slice(0, length);
}

/** Line numbers, starting at 0. */
function linesInsideLiterals({ text, parameters, body }: JavaScriptStructure): ReadonlySet<number> {
  const lines = new Set<number>();
  const lineAt = (offset: number): number => text.slice(0, offset).split("\n").length - 1;
  for (const { node, shift } of [parameters, body]) {
    node.cursor().iterate(({ type, from, to }) => {
      const isLiteral = type.name === "TemplateString" || type.name === "String";
      if (!isLiteral || !text.slice(from + shift, to + shift).includes("\n")) return;
      for (let line = lineAt(from + shift) + 1; line <= lineAt(to + shift); line += 1) lines.add(line);
    });
  }
  return lines;
}
