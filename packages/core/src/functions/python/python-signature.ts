import { pythonStringValue } from "./python-string-value.ts";
import type { PythonToken } from "./python-token.ts";

/**
 * A function's head on one line, with its parameters spaced as PEP 8 recommends. Annotations and defaults keep their
 * own spacing.
 *
 * @param tokens - from `async` or `def` to the colon before the body.
 */
export function pythonSignature(tokens: readonly PythonToken[]): string {
  const arrow = tokens.findIndex(({ text, depth }) => text === "->" && depth === 0);
  const parameters = arrow < 0 ? tokens : tokens.slice(0, arrow);
  const kept = tokens.filter((token, index) => !isTrailingComma(token, tokens[index + 1]));
  let annotated = false;
  return kept
    .map((token, index) => {
      const inParameters = token.depth === 1 && token.from <= (parameters.at(-1)?.from ?? 0);
      if (inParameters && token.text === ",") annotated = false;
      if (inParameters && token.text === ":") annotated = true;
      const space = spaceBefore(kept.slice(Math.max(0, index - 2), index), token, { inParameters, annotated });
      // After its default, a parameter has no further "=" except in lambdas.
      if (kept[index - 1]?.text === "=" && inParameters) annotated = false;
      return space + onOneLine(token);
    })
    .join("");
}

function isTrailingComma(token: PythonToken, next: PythonToken | undefined): boolean {
  return token.text === "," && token.depth === 1 && next?.depth === 0;
}

interface Place {
  readonly inParameters: boolean;
  readonly annotated: boolean;
}

function spaceBefore(before: readonly PythonToken[], token: PythonToken, place: Place): string {
  const previous = before.at(-1);
  const asWritten = previous === undefined || previous.to === token.from ? "" : " ";
  if (previous === undefined || "([{".includes(previous.text) || ")]},".includes(token.text)) return "";
  if (previous.text === ",") return " ";
  if (token.depth === 0) return spaceOutside(previous, token, asWritten);
  if (!place.inParameters) return asWritten;
  if (token.text === ":") return "";
  if (token.text === "=" || previous.text === "=") return place.annotated ? " " : "";
  if (previous.text === ":") return " ";
  return isParameterStar(before) ? "" : asWritten;
}

function spaceOutside(previous: PythonToken, token: PythonToken, asWritten: string): string {
  if (token.text === "->" || previous.text === "->") return " ";
  const [opensParameters, endsHead] = ["([".includes(token.text), token.text === ":"];
  return opensParameters || endsHead ? "" : asWritten;
}

function isParameterStar(before: readonly PythonToken[]): boolean {
  const [opening, star] = before;
  return star !== undefined && /^\*\*?$/.test(star.text) && opening !== undefined && "(,".includes(opening.text);
}

function onOneLine(token: PythonToken): string {
  if (!token.text.includes("\n")) return token.text;
  const value = token.kind === "string" ? pythonStringValue(token) : undefined;
  return value === undefined ? token.text.replaceAll("\n", String.raw`\n`) : JSON.stringify(value);
}
