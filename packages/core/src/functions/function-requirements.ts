import type { GlobalImport } from "./global-import.ts";

/** What a function needs around it before it can be called. */
export interface FunctionRequirements {
  /**
   * Python packages, installed when missing, as pip understands them: `"pandas>=2"`, a URL, a path. Options (`-r`) are
   * not allowed. Only for Python functions.
   */
  readonly pythonPackages?: readonly string[];
  /** npm packages, installed when missing, as npm understands them: `"lodash@^4"`. Only for JavaScript functions. */
  readonly npmPackages?: readonly string[];
  /** The imports that the function's body relies on: a function travels without the imports of its file. */
  readonly globalImports?: readonly GlobalImport[];
}
