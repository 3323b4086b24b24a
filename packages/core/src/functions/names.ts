import { InvalidInputError } from "../errors/invalid-input-error.ts";

const pythonName = /^[\p{XID_Start}_]\p{XID_Continue}*$/u;

const keywords: ReadonlySet<string> = new Set([
  ..."False None True and as assert async await break class continue def del elif else except finally for".split(" "),
  ..."from global if import in is lambda nonlocal not or pass raise return try while with yield".split(" "),
]);

/**
 * True for a name that Python code may bind, such as `load_data` or `größe`; false for keywords, `a.b`, `1st` and
 * `a-b`.
 */
export function isPythonIdentifier(name: string): boolean {
  return pythonName.test(name) && !keywords.has(name);
}

const javaScriptName = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;

const reserved: ReadonlySet<string> = new Set([
  ..."arguments await break case catch class const continue debugger default delete do else enum eval export".split(
    " ",
  ),
  ..."extends false finally for function if implements import in instanceof interface let new null package".split(" "),
  ..."private protected public return static super switch this throw true try typeof var void while with".split(" "),
  "yield",
]);

/**
 * True for a name that a JavaScript module may bind, such as `loadData` or `$x`; false for reserved words, `a.b` and
 * `a-b`.
 */
export function isJavaScriptIdentifier(name: string): boolean {
  return javaScriptName.test(name) && !reserved.has(name);
}

const npmName = String.raw`(?:@[\w~-][\w.~-]*\/)?[A-Za-z0-9_~-][\w.~-]*`;
const segments = String.raw`(?:\/[\w@~-][\w.@~-]*)*`;
const javaScriptSpecifier = new RegExp(String.raw`^(?:node:\w+(?:\/\w+)*|(?:\.\/)?${npmName}${segments})$`, "u");

/** True for `pandas` and `matplotlib.pyplot`. */
export function isPythonModuleName(name: string): boolean {
  return name.split(".").every(isPythonIdentifier);
}

/** True for `node:fs`, `lodash`, `@scope/name/part.js` and `./helpers.js`; false for URLs and for paths with `..`. */
export function isJavaScriptModuleName(name: string): boolean {
  return javaScriptSpecifier.test(name);
}

/** @throws InvalidInputError unless at least one language can import a module of this name. */
export function assertModuleName(name: string): void {
  if (typeof name === "string" && (isPythonModuleName(name) || isJavaScriptModuleName(name))) return;
  throw new InvalidInputError(`${JSON.stringify(name)} is not the name of a module`, {
    remedy: 'Name a Python module ("pandas", "os.path") or a JavaScript one ("lodash", "@scope/name", "node:fs").',
  });
}

/** @throws InvalidInputError unless `name` is a module's name or a name that a module may export. */
export function assertImportableName(name: string): void {
  if (!isBindingName(name)) assertModuleName(name);
}

/**
 * @throws InvalidInputError unless `name` has the form of an identifier; each language checks its reserved words
 * itself.
 */
export function assertBindingName(name: unknown, what: string): void {
  if (isBindingName(name)) return;
  throw new InvalidInputError(`${JSON.stringify(name)} cannot be ${what}`, {
    remedy: "Use a single identifier: letters, digits and _, not starting with a digit.",
  });
}

function isBindingName(name: unknown): boolean {
  return typeof name === "string" && javaScriptName.test(name);
}
