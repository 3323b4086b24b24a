import type { Alias, FunctionWithRequirements, GlobalImport } from "@fenced/core";

/** The file that names the executor that created a package directory in `node_modules`. */
export const functionsPackageMarker = ".fenced-functions";

/** The source of the Python module with `functions`, after their deduplicated imports. */
export function renderPythonModule(functions: readonly FunctionWithRequirements[]): string {
  const imports = new Set(functions.flatMap((each) => (each.requirements.globalImports ?? []).map(pythonImport)));
  return `${[...imports].join("\n")}\n\n\n${functions.map((each) => each.source).join("\n\n\n")}\n`;
}

function pythonImport(entry: GlobalImport): string {
  if (typeof entry === "string") return `import ${entry}`;
  if ("alias" in entry) return `import ${entry.name} as ${entry.alias}`;
  return `from ${entry.module} import ${entry.imports.map(importedName).join(", ")}`;
}

/**
 * The source of the ES module that exports `functions`, after their deduplicated imports. A module that is imported as
 * a whole becomes a namespace named after the last part of its specifier, unless there is an alias.
 */
export function renderJavaScriptModule(functions: readonly FunctionWithRequirements[]): string {
  const imports = new Set(functions.flatMap((each) => (each.requirements.globalImports ?? []).map(javaScriptImport)));
  const sources = functions.map((each) => each.source).join("\n\n");
  const names = functions.map((each) => each.name).join(", ");
  return `${[...imports].join("\n")}\n\n${sources}\n\nexport { ${names} };\n`;
}

function javaScriptImport(entry: GlobalImport): string {
  if (typeof entry === "string") return `import * as ${bindingName(entry)} from ${JSON.stringify(entry)};`;
  if ("alias" in entry) return `import * as ${entry.alias} from ${JSON.stringify(entry.name)};`;
  return `import { ${entry.imports.map(importedName).join(", ")} } from ${JSON.stringify(entry.module)};`;
}

function importedName(entry: string | Alias): string {
  return typeof entry === "string" ? entry : `${entry.name} as ${entry.alias}`;
}

/** `node:fs/promises` is bound as `promises`, `date-fns` as `date_fns`. */
function bindingName(specifier: string): string {
  const last =
    specifier
      .replace(/^node:/, "")
      .split("/")
      .at(-1) ?? specifier;
  return last.replaceAll(/[^\p{ID_Continue}$]/gu, "_").replace(/^(?=\d)/, "_");
}
