import { Parser, type Node } from "commonmark";
import type { CodeBlock } from "../execution/code-block.ts";

/**
 * The fenced code blocks of a Markdown text, in order of appearance, wherever CommonMark sees a fence: with backticks
 * or tildes, at the margin, in lists, in quotes.
 *
 * The language is the first word of the info string as it is written there (`python title="x"`, `{.python}`,
 * `python{1,3}` and `python:main.py` all give `python`), or an empty string if there is none. The code's lines are
 * joined by `\n`, without one after the last line; blank lines inside the fence are kept.
 *
 * A fence that never closes is not a block: the answer was cut off, and half a program should not run. Neither is
 * code that is only indented.
 *
 * @example
 * extractCodeBlocks("Run this:\n\n```python\nprint(6 * 7)\n```\n"); // [{ language: "python", code: "print(6 * 7)" }]
 */
export function extractCodeBlocks(markdown: string): CodeBlock[] {
  // Only blocks matter here; without this every paragraph would be parsed for emphasis and links as well.
  const parser = Object.assign(new Parser(), { processInlines: () => undefined });
  const walker = parser.parse(markdown).walker();
  const blocks: CodeBlock[] = [];
  for (let step = walker.next(); step !== null; step = walker.next()) {
    const block = step.entering ? asFencedBlock(step.node) : undefined;
    if (block) blocks.push(block);
  }
  return blocks;
}

function asFencedBlock(node: Node): CodeBlock | undefined {
  // The info of indented code is null, that of a fence at least an empty string.
  if (node.type !== "code_block" || node.info === null || node.literal === null) return undefined;
  const [[firstLine], [lastLine]] = node.sourcepos;
  const codeLines = node.literal.split("\n").length - 1;
  const closed = lastLine - firstLine === codeLines + 1;
  return closed ? { language: languageOf(node.info), code: node.literal.replace(/\n$/, "") } : undefined;
}

function languageOf(info: string): string {
  const attributes = /^\{(.*)/s.exec(info)?.[1];
  if (attributes === undefined) return /^[^\s,:{]*/.exec(info)?.[0] ?? "";
  // Pandoc writes {#id .python}, R Markdown and MyST {python, echo=FALSE}.
  return /(?:^|\s)\.([^\s,}.]+)/.exec(attributes)?.[1] ?? /^\s*([^\s,}#=]*)/.exec(attributes)?.[1] ?? "";
}
