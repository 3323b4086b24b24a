import type { PythonLine } from "./python-lines.ts";
import type { PythonToken } from "./python-token.ts";
import { blankStars } from "./rewrite-expressions.ts";

/**
 * Replaces what lezer's grammar does not know in the head of a statement.
 *
 * @param index - of the line in `lines`.
 * @param words - what the line's tokens become in the shadow; changed in place.
 */
export function rewriteStatement(lines: readonly PythonLine[], index: number, words: string[]): void {
  const line = lines[index];
  if (!line) return;
  const { tokens } = line;
  const head = tokens[0].text === "async" ? 1 : 0;
  const keyword = tokens[head]?.text;
  if (keyword === "@") rewriteDecorator(lines, index, words);
  if (keyword === "with") rewriteWith(tokens, head, words);
  if (keyword === "for") rewriteFor(tokens, words);
  if (keyword === "def" || keyword === "class") rewriteDefinition(tokens, head, words);
  if (isTypeStatement(tokens)) rewriteDefinition(tokens, 0, words, "");
  if (isMatch(lines, index)) rewriteMatch(tokens, words);
  if (isCase(lines, index)) rewriteCase(tokens, words);
}

/** Any expression may decorate. It becomes a plain name here and is parsed by itself; `def` or `class` must follow. */
function rewriteDecorator(lines: readonly PythonLine[], index: number, words: string[]): void {
  const next = lines[index + 1];
  const decorated = next?.tokens[next.tokens[0].text === "async" ? 1 : 0]?.text ?? "";
  if (words.length === 1 || !["@", "def", "class"].includes(decorated)) return;
  words.fill("");
  words[0] = "x";
}

/** `with (a as b, c as (d, e)):` becomes a list of expressions. */
function rewriteWith(tokens: readonly PythonToken[], head: number, words: string[]): void {
  const deepest = tokens[head + 1]?.text === "(" ? 1 : 0;
  for (const [index, { text, depth }] of tokens.entries()) {
    const named = tokens[index + 1]?.kind === "name" || "([".includes(tokens[index + 1]?.text ?? "-");
    if (text === "as" && depth <= deepest && named) words[index] = " ,";
  }
}

/** The targets are rewritten like those of a comprehension. */
function rewriteFor(tokens: readonly PythonToken[], words: string[]): void {
  const start = tokens.findIndex(({ text, depth }) => text === "in" && depth === 0);
  if (start >= 0) blankStars(tokens, start, words, ({ text }) => text === ":");
}

/** Type parameters disappear, and what is special in the others: `def f[T: int = bool](a, /, *args: *T)`. */
function rewriteDefinition(tokens: readonly PythonToken[], head: number, words: string[], keyword?: string): void {
  if (keyword !== undefined) words[head] = keyword;
  if (tokens[head + 2]?.text === "[") {
    const end = tokens.findIndex(({ text, depth }) => text === "]" && depth === 0);
    words.fill("", head + 2, end + 1);
  }
  for (const [index, { text, depth }] of tokens.entries()) {
    if (text === "*" && tokens[index - 1]?.text === ":") words[index] = "";
    // The grammar knows this one but shows no node for it.
    if (text === "/" && depth === 1 && ",)".includes(tokens[index + 1]?.text ?? "-")) words[index] = "_";
  }
}

function isTypeStatement([keyword, name, next]: readonly PythonToken[]): boolean {
  return keyword?.text === "type" && name?.kind === "name" && (next?.text === "=" || next?.text === "[");
}

/** `match` and `case` are keywords only where they make a statement. */
function isMatch(lines: readonly PythonLine[], index: number): boolean {
  const [line, next] = [lines[index], lines[index + 1]];
  const opensBlock = line !== undefined && next !== undefined && next.level > line.level;
  return opensBlock && line.tokens[0].text === "match" && next.tokens[0].text === "case";
}

function isCase(lines: readonly PythonLine[], index: number): boolean {
  const line = lines[index];
  if (line?.tokens[0].text !== "case") return false;
  const opener = lines.findLastIndex((other, at) => at < index && other.level < line.level);
  return isMatch(lines, opener);
}

/** Both take a list of expressions and a body, as `with` does. */
function rewriteMatch(tokens: readonly PythonToken[], words: string[]): void {
  words[0] = "with";
  blankStars(tokens, 0, words, ({ text }) => text === ":");
  for (const [index, { text, depth }] of tokens.entries()) {
    if (text === ":=" && depth === 0) words[index] = " ,";
  }
}

/** Patterns are written like expressions, but for `as` and the guard. */
function rewriteCase(tokens: readonly PythonToken[], words: string[]): void {
  rewriteMatch(tokens, words);
  for (const [index, { text, depth }] of tokens.entries()) {
    if (text === ":" && depth === 0) return;
    if (text === "as" && tokens[index + 1]?.kind === "name") words[index] = " |";
    if (text === "if" && depth === 0) words[index] = " ,";
  }
}
