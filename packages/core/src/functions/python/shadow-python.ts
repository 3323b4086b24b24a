import type { PythonLine } from "./python-lines.ts";
import type { PythonToken } from "./python-token.ts";
import { rewriteExpressions } from "./rewrite-expressions.ts";
import { rewriteStatement } from "./rewrite-statement.ts";

/**
 * The source as lezer's grammar takes it, each token at its old offset. The grammar lags behind Python (`1.`, a bare
 * `yield`, `with a as (b, c)`, `case Point():`, `lambda a, /: a` are errors to it), so what it does not know is replaced
 * by something of the same length and place that it does. Strings, comments and line breaks that do not count have
 * been dealt with by the scanner and are gone.
 */
export function shadowPython(source: string, lines: readonly PythonLine[]): string {
  let shadow = "";
  for (const [index, line] of lines.entries()) {
    const words = line.tokens.map(neutralWord);
    rewriteExpressions(line.tokens, words);
    rewriteStatement(lines, index, words);
    shadow += blank(source.slice(shadow.length, line.tokens[0].from)) + placed(line.tokens, words);
  }
  // Without a line break at its end, lezer takes a last line of white space for an indented block.
  return `${shadow}${blank(source.slice(shadow.length))}\n`;
}

/** The same for the tokens of one expression; the result begins at the first of them. */
export function shadowPythonExpression(tokens: readonly PythonToken[]): string {
  const words = tokens.map(neutralWord);
  rewriteExpressions(tokens, words);
  return placed(tokens, words);
}

function placed(tokens: readonly PythonToken[], words: readonly string[]): string {
  const start = tokens[0]?.from ?? 0;
  return tokens.reduce((text, token, index) => {
    const word = (words[index] ?? "").padEnd(token.text.length);
    return text.padEnd(token.from - start) + word;
  }, "");
}

/** Literals without what is in them; names without the meaning that the grammar gives to some. */
function neutralWord({ kind, text }: PythonToken): string {
  // ".5" may follow a word without a space.
  if (kind === "number") return `${text.startsWith(".") ? " " : "1"}${"1".repeat(text.length - 1)}`;
  if (kind === "string") return `"${"_".repeat(text.length - 2)}"`;
  return /^(?:print|match|case|type)$/.test(text) ? `${text.slice(0, -1)}_` : text;
}

/** What stands between the lines of code: line breaks and indentation, but no comments. */
function blank(text: string): string {
  return text.replaceAll(/[^\n\t]/g, " ");
}
