import { assertBindingName, assertImportableName } from "./names.ts";

/**
 * A module, or a name in a module, under another name: `import numpy as np`.
 *
 * @example
 * new Alias("numpy", "np");
 * new ImportFromModule("pathlib", [new Alias("Path", "P")]);
 */
export class Alias {
  /** The module's name, or the name that the module exports. */
  readonly name: string;
  /** The name that the functions use for it. */
  readonly alias: string;

  /** @throws InvalidInputError if one of the names is not a valid identifier, which prevents code injection. */
  constructor(name: string, alias: string) {
    assertImportableName(name);
    assertBindingName(alias, "an alias");
    this.name = name;
    this.alias = alias;
    Object.freeze(this);
  }
}
