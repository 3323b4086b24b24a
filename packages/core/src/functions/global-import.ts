import type { Alias } from "./alias.ts";
import type { ImportFromModule } from "./import-from-module.ts";

/**
 * An import that a function's module makes before it defines the function: a module's name, an `Alias`
 * (`"alias" in it`) or an `ImportFromModule` (`"module" in it`).
 */
export type GlobalImport = string | Alias | ImportFromModule;
