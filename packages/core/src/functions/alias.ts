import { assertBindingName, assertImportableName } from "./names.ts";

/**
 * A module, or a name in a module, under another name: `import numpy as np`.
 *
 * @example
 * new Alias("numpy", "np");
 * new ImportFromModule("pathlib", [new Alias("Path", "P")]);
 */
export class Alias {
  /** The module as it is imported, or the name as its module exports it. */
  readonly name: string;
  /** The name that the functions use for it. */
  readonly alias: string;

  /** @throws InvalidInputError if one of the names is not a valid identifier, which keeps code from being injected. */
  constructor(name: string, alias: string) {
    assertImportableName(name);
    assertBindingName(alias, "an alias");
    this.name = name;
    this.alias = alias;
    Object.freeze(this);
  }
}
