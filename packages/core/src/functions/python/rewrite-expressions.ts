import { isPythonIdentifier } from "../is-python-identifier.ts";
import type { PythonToken } from "./python-token.ts";

/**
 * Replaces what lezer's grammar does not know inside of expressions.
 *
 * @param words - what the tokens become in the shadow; changed in place.
 */
export function rewriteExpressions(tokens: readonly PythonToken[], words: string[]): void {
  const brackets = innermostBrackets(tokens);
  for (const [index, { text }] of tokens.entries()) {
    const [previous, next] = [tokens[index - 1]?.text, tokens[index + 1]];
    if (text === "yield" && startsYield(tokens, index) && endsExpression(next)) words[index] = "yyyyy";
    const startsItem = brackets[index] === "[" && isOneOf(previous, "[", ",");
    if (text === "*" && startsItem && !endsExpression(next)) words[index] = " ";
    if (text === ":=" && brackets[index] === "{") words[index] = " ,";
    if (text === "lambda") rewriteLambda(tokens, index, words);
    if (text === "for") blankStars(tokens, index, words, (token) => token.text === "in");
  }
}

/** Blanks the stars of a list without brackets that begins behind `tokens[start]`: `for a, *b in`, `in *a, b:`. */
export function blankStars(
  tokens: readonly PythonToken[],
  start: number,
  words: string[],
  isEnd: (token: PythonToken) => boolean,
): void {
  const depth = tokens[start]?.depth;
  for (let index = start + 1; index < tokens.length; index += 1) {
    const token = tokens[index];
    if (!token || (token.depth === depth && isEnd(token))) return;
    const previous = tokens[index - 1];
    const startsItem = previous === tokens[start] || isOneOf(previous?.text, ",", "(", "[");
    if (token.text === "*" && startsItem && token.depth - (depth ?? 0) <= 1) words[index] = " ";
  }
}

function rewriteLambda(tokens: readonly PythonToken[], start: number, words: string[]): void {
  const depth = tokens[start]?.depth;
  let inner = 0;
  for (let index = start + 1; index < tokens.length; index += 1) {
    const token = tokens[index];
    if (token?.depth !== depth) continue;
    if (token?.text === "lambda") inner += 1;
    if (token?.text === ":" && inner === 0) {
      if (tokens[index - 1]?.text === ",") words[index - 1] = " ";
      return;
    }
    if (token?.text === ":") inner -= 1;
    if (token?.text === "/" && isOneOf(tokens[index + 1]?.text, ",", ":")) words[index] = "_";
  }
}

/** For each token the bracket that it stands in directly. */
function innermostBrackets(tokens: readonly PythonToken[]): (string | undefined)[] {
  const open: string[] = [];
  return tokens.map(({ text, kind }) => {
    if (kind === "operator" && isOneOf(text, ")", "]", "}")) open.pop();
    const innermost = open.at(-1);
    if (kind === "operator" && isOneOf(text, "(", "[", "{")) open.push(text);
    return innermost;
  });
}

/** A bare `yield` is a statement, the right side of an assignment, or stands in brackets of its own. */
function startsYield(tokens: readonly PythonToken[], index: number): boolean {
  const [before, previous] = [tokens[index - 2], tokens[index - 1]];
  if (previous === undefined || isOneOf(previous.text, ":", ";")) return true;
  if (previous.text !== "(") return previous.depth === 0 && /^(?!==)[^<>!]*=$/.test(previous.text);
  const isCall = before !== undefined && (isPythonIdentifier(before.text) || isOneOf(before.text, ")", "]"));
  return !isCall;
}

function endsExpression(token: PythonToken | undefined): boolean {
  return token === undefined || isOneOf(token.text, ")", "]", "}", ",", ";", "=");
}

function isOneOf(text: string | undefined, ...texts: readonly string[]): boolean {
  return text !== undefined && texts.includes(text);
}
