import type { HostFunction } from "@fenced/core";
import { kindOf, type SchemaField, type SchemaPart, wholeSchema } from "./schema-parts.ts";

/** TypeScript declarations of host functions, with descriptions of their arguments. */
export function typeScriptDeclarations(functions: readonly HostFunction[], keyword: "declare" | "export"): string {
  return functions.map((each) => declaration(each, keyword)).join("\n\n");
}

function declaration({ name, description, inputSchema, outputSchema }: HostFunction, keyword: string): string {
  const input = wholeSchema(inputSchema);
  const kind = kindOf(input);
  const optional = kind.kind === "map" || (kind.kind === "object" && !kind.fields.some(({ required }) => required));
  const head = `${keyword} function ${name}(input${optional ? "?" : ""}: ${typeText(input, "")})`;
  return `${comment(description, "")}${head}: Promise<${typeText(wholeSchema(outputSchema), "")}>;`;
}

/** @param indent - indentation of the line on which the text starts. */
function typeText(part: SchemaPart, indent: string): string {
  const kind = kindOf(part);
  switch (kind.kind) {
    case "any":
      return "unknown";
    case "integer":
      return "number";
    case "literals":
      return kind.values.map((value) => JSON.stringify(value)).join(" | ") || "never";
    case "union":
      return [...new Set(kind.parts.map((each) => typeText(each, indent)))].join(" | ");
    case "array":
      return arrayText(typeText(kind.items, indent));
    case "map":
      return `Record<string, ${typeText(kind.values, indent)}>`;
    case "object":
      return objectText(kind.fields, indent);
    default:
      return kind.kind;
  }
}

function arrayText(items: string): string {
  return /[ |]/.test(items) ? `Array<${items}>` : `${items}[]`;
}

function objectText(fields: readonly SchemaField[], indent: string): string {
  const described = fields.some(({ description }) => description !== undefined);
  const texts = fields.map(({ name, part, required, description }) => {
    const inner = described ? `${indent}  ` : indent;
    const key = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? name : JSON.stringify(name);
    const text = `${key}${required ? "" : "?"}: ${typeText(part, inner)}`;
    return described ? `${comment(description, inner)}${inner}${text};\n` : text;
  });
  return described ? `{\n${texts.join("")}${indent}}` : `{ ${texts.join("; ")} }`;
}

function comment(text: string | undefined, indent: string): string {
  if (text === undefined || text.trim() === "") return "";
  const lines = text.trim().replaceAll("*/", "*\\/").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines.join("")} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}
