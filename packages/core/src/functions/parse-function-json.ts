import * as z from "zod";
import { describeIssues } from "../describe-issues.ts";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { JsonObject, JsonValue } from "../json-value.ts";
import { fieldRequirement } from "../options/requirement.ts";
import { Alias } from "./alias.ts";
import type { FunctionLanguage } from "./function-language.ts";
import type { FunctionRequirements } from "./function-requirements.ts";
import { ImportFromModule } from "./import-from-module.ts";

const aliasJson = z.strictObject({ name: z.string(), alias: z.string() });
const nameJson = z.union([z.string(), aliasJson]);
const importJson = z.union([nameJson, z.strictObject({ module: z.string(), imports: z.array(nameJson) })]);
const packagesJson = z.array(z.string());
const requirementsJson = z.strictObject({
  pythonPackages: packagesJson.exactOptional(),
  npmPackages: packagesJson.exactOptional(),
  globalImports: z.array(importJson).exactOptional(),
});

const functionJson = z.strictObject({
  language: z.enum(["python", "javascript"]),
  source: z.string(),
  requirements: requirementsJson.default({}),
});

/** The output of `FunctionWithRequirements.toJSON`. */
export interface FunctionJson {
  readonly language: FunctionLanguage;
  readonly source: string;
  readonly requirements: FunctionRequirements;
}

/** @throws InvalidInputError if the JSON has another shape. */
export function parseFunctionJson(json: JsonValue): FunctionJson {
  const parsed = functionJson.safeParse(json, { error: fieldRequirement });
  if (!parsed.success) {
    throw new InvalidInputError(`This is not the JSON of a function: ${describeIssues(parsed.error)}`, {
      remedy: "Pass what FunctionWithRequirements.toJSON returned: language, source, requirements.",
      cause: parsed.error,
    });
  }
  const { language, source, requirements } = parsed.data;
  const { globalImports, ...packages } = requirements;
  return {
    language,
    source,
    requirements: { ...packages, ...(globalImports && { globalImports: globalImports.map(reviveImport) }) },
  };
}

/** Returns the requirements as plain JSON, without unset fields. */
export function requirementsToJson(requirements: FunctionRequirements): JsonObject {
  return requirementsJson.parse(requirements);
}

type ImportJson = z.output<typeof importJson>;
type NameJson = z.output<typeof nameJson>;

function reviveImport(entry: ImportJson): string | Alias | ImportFromModule {
  if (typeof entry !== "string" && "module" in entry) {
    return new ImportFromModule(entry.module, entry.imports.map(reviveName));
  }
  return reviveName(entry);
}

function reviveName(entry: NameJson): string | Alias {
  return typeof entry === "string" ? entry : new Alias(entry.name, entry.alias);
}
