import type { Alias } from "./alias.ts";
import type { ImportFromModule } from "./import-from-module.ts";

/**
 * An import at the top of a function's module: a module's name, an `Alias` (`"alias" in it`) or an `ImportFromModule`
 * (`"module" in it`).
 */
export type GlobalImport = string | Alias | ImportFromModule;
