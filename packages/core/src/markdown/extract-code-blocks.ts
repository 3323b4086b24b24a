import * as z from "zod";
import type { CodeBlock } from "../execution/code-block.ts";
import { checkOptions } from "../options/check-options.ts";
import { findRawFences } from "./find-fences.ts";

const markdownArgument = z.object({ markdown: z.string() });

/** A fence in a Markdown text, as `findFences` returns it. */
export interface Fence extends CodeBlock {
  /** True if there is a closing fence. Code without one was cut off and should not run. */
  readonly closed: boolean;
}

/**
 * Returns the fenced code blocks of a Markdown text in order: with three or more backticks or tildes, at the margin or
 * indented, in lists and in quotes.
 *
 * The language is the first word of the info string as written (`python title="x"`, `{.python}`, `python{1,3}` and
 * `python:main.py` all give `python`), or an empty string if there is none. The code's lines are joined by `\n`,
 * without a final one; blank lines inside the fence are kept.
 *
 * A fence closes at a line with as many of its marks or more, and nothing else, that is indented at most three columns
 * further. One that never closes is not a block: the answer was cut off, and half a program should not run. Code that
 * is only indented is not a block either.
 *
 * It reads what models write, which is not all of CommonMark. If no closing fence follows, three backticks at the end
 * of a line of code close the fence. A fence may be indented by four columns and more. HTML does not hide a
 * fence: neither a tag directly above it, such as `<answer>` or `</think>`, nor a comment around it. The end of a list
 * item does not end a fence in it. A byte order mark at the beginning is ignored.
 *
 * Runs in linear time for any input.
 *
 * @throws InvalidInputError if `markdown` is not a string.
 *
 * @example
 * extractCodeBlocks("Run this:\n\n```python\nprint(6 * 7)\n```\n"); // [{ language: "python", code: "print(6 * 7)" }]
 */
export function extractCodeBlocks(markdown: string): CodeBlock[] {
  checkOptions(markdownArgument, { markdown }, "extractCodeBlocks");
  return findFences(markdown)
    .filter(({ closed }) => closed)
    .map(({ language, code }) => ({ language, code }));
}

/**
 * Also returns fences that never close, for programs that tell a model why its code did not run.
 *
 * @throws InvalidInputError if `markdown` is not a string.
 */
export function findFences(markdown: string): Fence[] {
  checkOptions(markdownArgument, { markdown }, "findFences");
  return findRawFences(markdown).map(({ info, lines, closed }) => ({
    language: languageOf(info),
    code: lines.join("\n"),
    closed,
  }));
}

function languageOf(info: string): string {
  const attributes = /^\{(.*)/s.exec(info)?.[1];
  if (attributes === undefined) return /^[^\s,:{]*/.exec(info)?.[0] ?? "";
  // Pandoc writes {#id .python}, R Markdown and MyST {python, echo=FALSE}.
  return /(?:^|\s)\.([^\s,}.]+)/.exec(attributes)?.[1] ?? /^\s*([^\s,}#=]*)/.exec(attributes)?.[1] ?? "";
}
