import type { JsonObject, JsonValue } from "../json-value.ts";
import type { Alias } from "./alias.ts";
import type { FunctionRequirements } from "./function-requirements.ts";
import type { GlobalImport } from "./global-import.ts";

/** Returns the requirements as plain JSON, without unset fields. */
export function requirementsToJson(requirements: FunctionRequirements): JsonObject {
  const { pythonPackages, npmPackages, globalImports } = requirements;
  return {
    ...(pythonPackages && { pythonPackages: [...pythonPackages] }),
    ...(npmPackages && { npmPackages: [...npmPackages] }),
    ...(globalImports && { globalImports: globalImports.map(importToJson) }),
  };
}

function importToJson(entry: GlobalImport): JsonValue {
  if (typeof entry !== "string" && "module" in entry) {
    return { module: entry.module, imports: entry.imports.map(nameToJson) };
  }
  return nameToJson(entry);
}

function nameToJson(entry: string | Alias): JsonValue {
  return typeof entry === "string" ? entry : { name: entry.name, alias: entry.alias };
}
