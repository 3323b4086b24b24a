import { isPythonIdentifier } from "../is-python-identifier.ts";
import { PythonProblem } from "./python-problem.ts";
import { pythonStringValue, stringPrefix } from "./python-string-value.ts";
import type { PythonToken } from "./python-token.ts";

/**
 * Finds what neither the scanner nor lezer looks at: escapes in strings, bytes next to text, keywords as attributes,
 * empty statements.
 *
 * @throws PythonProblem at the first such place.
 */
export function checkTokens(tokens: readonly PythonToken[]): void {
  for (const [index, token] of tokens.entries()) {
    const previous = tokens[index - 1];
    if (token.kind === "string") checkString(token, previous);
    if (token.text === ";" && previous?.text === ";") throw new PythonProblem(token.from, "invalid syntax");
    const isAttribute = token.kind === "name" && previous?.text === "." && !isRelativeImport(tokens, index);
    if (isAttribute && !isPythonIdentifier(token.text)) {
      throw new PythonProblem(token.from, `"${token.text}" is a keyword`);
    }
  }
}

/** `from . import a`, `from ... import a` */
function isRelativeImport(tokens: readonly PythonToken[], index: number): boolean {
  const before = tokens[index - 2]?.text ?? "";
  return tokens[index]?.text === "import" && ["from", ".", "..."].includes(before);
}

function checkString(token: PythonToken, previous: PythonToken | undefined): void {
  const isBytes = stringPrefix(token).includes("b");
  if (previous?.kind === "string" && stringPrefix(previous).includes("b") !== isBytes) {
    throw new PythonProblem(token.from, "bytes and text cannot be joined");
  }
  if (isBytes && /[^\0-\x7f]/.test(token.text)) {
    throw new PythonProblem(token.from, "bytes can only contain ASCII characters");
  }
  pythonStringValue(token);
}
