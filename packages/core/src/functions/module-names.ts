import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { isPythonIdentifier } from "./is-python-identifier.ts";

const npmName = String.raw`(?:@[\w~-][\w.~-]*\/)?[A-Za-z0-9_~-][\w.~-]*`;
const segments = String.raw`(?:\/[\w@~-][\w.@~-]*)*`;
const javaScriptSpecifier = new RegExp(String.raw`^(?:node:\w+(?:\/\w+)*|(?:\.\/)?${npmName}${segments})$`, "u");
const bindingName = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;

/** True for `pandas` and `matplotlib.pyplot`. */
export function isPythonModuleName(name: string): boolean {
  return name.split(".").every(isPythonIdentifier);
}

/** True for `node:fs`, `lodash`, `@scope/name/part.js` and `./helpers.js`; false for URLs and paths that climb. */
export function isJavaScriptModuleName(name: string): boolean {
  return javaScriptSpecifier.test(name);
}

/** @throws InvalidInputError unless some language can import a module of this name. */
export function assertModuleName(name: string): void {
  if (isPythonModuleName(name) || isJavaScriptModuleName(name)) return;
  throw new InvalidInputError(`${JSON.stringify(name)} is not the name of a module`, {
    remedy: 'Name a Python module ("pandas", "os.path") or a JavaScript one ("lodash", "@scope/name", "node:fs").',
  });
}

/** @throws InvalidInputError unless `name` is a module's name or one that a module may export. */
export function assertImportableName(name: string): void {
  if (!bindingName.test(name)) assertModuleName(name);
}

/** @throws InvalidInputError unless `name` has the form of an identifier; reserved words are for the languages to judge. */
export function assertBindingName(name: string, what: string): void {
  if (bindingName.test(name)) return;
  throw new InvalidInputError(`${JSON.stringify(name)} cannot be ${what}`, {
    remedy: "Use a single identifier: letters, digits and _, no digit first.",
  });
}
