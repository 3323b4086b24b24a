import { PythonProblem } from "./python-problem.ts";
import type { PythonToken } from "./python-token.ts";

const simpleEscapes: ReadonlyMap<string, string> = new Map([
  ["\n", ""],
  ["\\", "\\"],
  ["'", "'"],
  ['"', '"'],
  ["a", "\u0007"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["v", "\v"],
]);

const escapes = /\\(?:([0-7]{1,3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(N\{[^}]+\})|([\s\S]))/g;
const literal = /^([a-zA-Z]*)("""|'''|"|')([\s\S]*)\2$/;

/**
 * The value of a string literal; `undefined` for bytes, f-strings and t-strings. `\N{name}` stays unchanged, because
 * resolving it would need the whole Unicode name table.
 *
 * @throws PythonProblem if it contains an escape that Python does not accept.
 */
export function pythonStringValue(token: PythonToken): string | undefined {
  const [, prefix = "", , content = ""] = literal.exec(token.text) ?? [];
  if (/[bft]/i.test(prefix)) return undefined;
  if (/r/i.test(prefix)) return content;
  return content.replaceAll(escapes, (whole: string, ...groups: (string | undefined)[]) => {
    const [octal, byte, short, long, named, other] = groups;
    if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
    const hex = byte ?? short ?? long;
    if (hex !== undefined) return fromHex(hex, token);
    if (named !== undefined || other === undefined) return whole;
    if ("xuUN".includes(other)) throw new PythonProblem(token.from, `the string has an incomplete \\${other} escape`);
    return simpleEscapes.get(other) ?? whole;
  });
}

function fromHex(digits: string, token: PythonToken): string {
  const code = Number.parseInt(digits, 16);
  if (code > 0x10_ff_ff) throw new PythonProblem(token.from, `the string has an invalid escape: \\U${digits}`);
  return String.fromCodePoint(code);
}
