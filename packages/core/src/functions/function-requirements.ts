import type { GlobalImport } from "./global-import.ts";

/** What a function needs before it can be called. */
export interface FunctionRequirements {
  /**
   * Python packages to install if missing, in pip's syntax: `"pandas>=2"`, a URL, a path. Options (`-r`) are not
   * allowed. Only for Python functions. Default: none.
   */
  readonly pythonPackages?: readonly string[];
  /** npm packages to install if missing, in npm's syntax: `"lodash@^4"`. Only for JavaScript functions. Default: none. */
  readonly npmPackages?: readonly string[];
  /**
   * The imports that the function's body uses, since a function travels without the imports of its file. Default: none.
   */
  readonly globalImports?: readonly GlobalImport[];
}
