import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { Alias } from "./alias.ts";
import { assertBindingName, assertModuleName } from "./names.ts";

/**
 * Names that come from a module: `from pathlib import Path`, `import { readFile } from "node:fs/promises"`.
 *
 * @example
 * new ImportFromModule("pathlib", ["Path", new Alias("PurePath", "P")]);
 */
export class ImportFromModule {
  /** The module's name. */
  readonly module: string;
  /** The names to import; an `Alias` renames one of them. */
  readonly imports: readonly (string | Alias)[];

  /**
   * @throws InvalidInputError if a name is not a valid identifier, which prevents code injection, or the list is empty.
   */
  constructor(module: string, imports: readonly (string | Alias)[]) {
    assertModuleName(module);
    if (!Array.isArray(imports) || imports.length === 0) {
      throw new InvalidInputError(`There are no names to import from ${JSON.stringify(module)}`, {
        remedy: "List the names to import, or import the module itself by its name.",
      });
    }
    this.module = module;
    this.imports = Object.freeze(imports.map(normaliseImport));
    Object.freeze(this);
  }
}

function normaliseImport(entry: string | Alias): string | Alias {
  const name: unknown = typeof entry === "string" ? entry : Reflect.get(Object(entry), "name");
  assertBindingName(name, "imported from a module");
  // Copy it, because a plain object of the same shape has the right type but has not been checked.
  return typeof entry === "string" ? entry : new Alias(entry.name, entry.alias);
}
