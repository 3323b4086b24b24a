import type { Alias, FunctionWithRequirements, GlobalImport } from "@fenced/core";

/** The source of the Python module that holds `functions`: their imports first, each once. */
export function renderPythonModule(functions: readonly FunctionWithRequirements[]): string {
  const imports = new Set(functions.flatMap((each) => (each.requirements.globalImports ?? []).map(pythonImport)));
  return `${[...imports].join("\n")}\n\n\n${functions.map((each) => each.source).join("\n\n\n")}\n`;
}

function pythonImport(entry: GlobalImport): string {
  if (typeof entry === "string") return `import ${entry}`;
  if ("alias" in entry) return `import ${entry.name} as ${entry.alias}`;
  return `from ${entry.module} import ${entry.imports.map(importedName).join(", ")}`;
}

function importedName(entry: string | Alias): string {
  return typeof entry === "string" ? entry : `${entry.name} as ${entry.alias}`;
}
