import * as z from "zod";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { checkOptions, optionsSchema, type OptionSchemas } from "../options/check-options.ts";
import { Alias } from "./alias.ts";
import type { FunctionLanguage } from "./function-language.ts";
import type { FunctionRequirements } from "./function-requirements.ts";
import type { GlobalImport } from "./global-import.ts";
import { ImportFromModule } from "./import-from-module.ts";
import { isJavaScriptIdentifier, isJavaScriptModuleName, isPythonIdentifier, isPythonModuleName } from "./names.ts";

const names = z.array(
  z.custom<string | Alias>(
    (value) => typeof value === "string" || hasTexts(value, "name", "alias"),
    "must be a name, or an Alias",
  ),
);

const requirements: z.ZodType<FunctionRequirements> = optionsSchema({
  pythonPackages: z.array(z.string()).exactOptional(),
  npmPackages: z.array(z.string()).exactOptional(),
  globalImports: z
    .array(
      z.custom<GlobalImport>(
        (value) =>
          typeof value === "string" ||
          hasTexts(value, "name", "alias") ||
          (hasTexts(value, "module") && "imports" in value && names.safeParse(value.imports).success),
        "must be a module's name, an Alias or an ImportFromModule",
      ),
    )
    .exactOptional(),
} satisfies OptionSchemas<FunctionRequirements>);

/**
 * Returns a frozen copy of the requirements, validated for the language.
 *
 * @throws InvalidInputError if a requirement is unknown, or a package or an import does not fit the language.
 */
export function normaliseRequirements(language: FunctionLanguage, options: FunctionRequirements): FunctionRequirements {
  const given = checkOptions(requirements, options, "FunctionRequirements");
  const [own, foreign] =
    language === "python" ? (["pythonPackages", "npmPackages"] as const) : (["npmPackages", "pythonPackages"] as const);
  if ((given[foreign] ?? []).length > 0) {
    throw new InvalidInputError(`A ${language} function cannot require ${foreign}`, {
      remedy: `List the packages that it needs in ${own}.`,
    });
  }
  const packages = given[own];
  const { globalImports } = given;
  for (const name of packages ?? []) assertPackage(name);
  return Object.freeze({
    ...(packages && { [own]: Object.freeze(packages.map((name) => name.trim())) }),
    ...(globalImports && { globalImports: Object.freeze(globalImports.map((entry) => checkImport(language, entry))) }),
  });
}

function hasTexts<Name extends string>(value: unknown, ...keys: readonly Name[]): value is Record<Name, string> {
  return (
    typeof value === "object" && value !== null && keys.every((key) => typeof Reflect.get(value, key) === "string")
  );
}

function assertPackage(name: string): void {
  // The installer would read a name with a leading dash as an option; a line break would end the line in a file.
  if (/^\s*[^\s-]/.test(name) && !/[\p{Cc}\u2028\u2029]/u.test(name)) return;
  throw new InvalidInputError(`${JSON.stringify(name)} is not a package`, {
    remedy: 'Name a package and, if it matters, its version ("pandas>=2", "lodash@^4"), a URL or a path.',
  });
}

function checkImport(language: FunctionLanguage, entry: GlobalImport): GlobalImport {
  if (typeof entry === "string") {
    assertModule(language, entry);
    return entry;
  }
  if ("module" in entry) {
    assertModule(language, entry.module);
    for (const name of entry.imports) assertImportedName(language, name);
    return new ImportFromModule(entry.module, entry.imports);
  }
  assertModule(language, entry.name);
  assertBinding(language, entry.alias);
  return new Alias(entry.name, entry.alias);
}

function assertModule(language: FunctionLanguage, name: string): void {
  const fits = language === "python" ? isPythonModuleName(name) : isJavaScriptModuleName(name);
  if (fits) return;
  throw new InvalidInputError(`${JSON.stringify(name)} is not the name of a ${language} module`, {
    remedy: `Import modules of the function's own language, such as ${language === "python" ? '"os.path"' : '"node:fs"'}.`,
  });
}

function assertImportedName(language: FunctionLanguage, entry: string | Alias): void {
  // A JavaScript module may export any name; only the bound one must not be reserved.
  if (typeof entry !== "string") assertBinding(language, entry.alias);
  if (typeof entry === "string") assertBinding(language, entry);
  else if (language === "python") assertBinding(language, entry.name);
}

function assertBinding(language: FunctionLanguage, name: string): void {
  const fits = language === "python" ? isPythonIdentifier(name) : isJavaScriptIdentifier(name);
  if (fits) return;
  throw new InvalidInputError(`${JSON.stringify(name)} is not a valid name in ${language}`, {
    remedy: "Choose a name that is an identifier and not a keyword there.",
  });
}
