import { type HostFunction, isPythonIdentifier } from "@fenced/core";
import { kindOf, type SchemaField, type SchemaPart, wholeSchema } from "./schema-parts.ts";

/** Python stubs of host functions: the classes of their types, and each function's signature with its docstring. */
export function pythonStubs(functions: readonly HostFunction[], head: (each: HostFunction) => string): string[] {
  const taken = new Set(["Any", "Literal", "NotRequired", "TypedDict", ...functions.map(({ name }) => name)]);
  return functions.flatMap((each) => stubOf(each, head(each), taken));
}

/** The names of a function's arguments, in the order of its positional parameters. */
export function pythonParameters({ inputSchema }: HostFunction): readonly string[] {
  return parametersOf(inputSchema).map(({ name }) => name);
}

function parametersOf(schema: HostFunction["inputSchema"]): readonly SchemaField[] {
  const kind = kindOf(wholeSchema(schema));
  const fields = kind.kind === "object" ? kind.fields.filter(({ name }) => isParameterName(name)) : [];
  return fields.toSorted((a, b) => Number(b.required) - Number(a.required));
}

/** Python normalizes identifiers, so two different names may become the same one. */
function isParameterName(name: string): boolean {
  return isPythonIdentifier(name) && name === name.normalize("NFKC") && name !== "__debug__";
}

function stubOf(
  { name, description, inputSchema, outputSchema }: HostFunction,
  head: string,
  taken: Set<string>,
): string[] {
  const classes = new TypeClasses(name, taken);
  const parameters = parametersOf(inputSchema);
  const texts = parameters.map(
    ({ name: parameter, part, required }) =>
      `${parameter}: ${classes.typeText(part, parameter)}${required ? "" : " = ..."}`,
  );
  const kind = kindOf(wholeSchema(inputSchema));
  const others = kind.kind !== "object" || kind.fields.length > parameters.length ? ["**others: Any"] : [];
  const result = classes.typeText(wholeSchema(outputSchema), "result");
  const signature = `${head}def ${name}(${[...texts, ...others].join(", ")}) -> ${result}:`;
  return [...classes.texts, `${signature}\n${docstring(description, parameters)}    ...`];
}

/** The classes for one function's objects. */
class TypeClasses {
  readonly texts: string[] = [];
  readonly #function: string;
  readonly #taken: Set<string>;

  /** @param taken - names that the module already uses. */
  constructor(functionName: string, taken: Set<string>) {
    this.#function = functionName;
    this.#taken = taken;
  }

  /** @param place - what has this type, for the name of its class. */
  typeText(part: SchemaPart, place: string): string {
    const kind = kindOf(part);
    switch (kind.kind) {
      case "any":
        return "Any";
      case "null":
        return "None";
      case "boolean":
        return "bool";
      case "integer":
        return "int";
      case "number":
        return "float";
      case "string":
        return "str";
      case "literals":
        return literalText(kind.values);
      case "union":
        return [...new Set(kind.parts.map((each) => this.typeText(each, place)))].join(" | ");
      case "array":
        return `list[${this.typeText(kind.items, place)}]`;
      case "map":
        return `dict[str, ${this.typeText(kind.values, place)}]`;
      default:
        return this.#classOf(kind.fields, place);
    }
  }

  #classOf(fields: readonly SchemaField[], place: string): string {
    if (!fields.every(({ name }) => isPythonIdentifier(name) && !name.startsWith("__"))) return "dict[str, Any]";
    const name = this.#newName(`${camel(this.#function)}${camel(place)}`);
    const lines = fields.map(({ name: field, part, required, description }) => {
      const type = this.typeText(part, `${place}_${field}`);
      const text = description === undefined ? "" : `  # ${oneLine(description)}`;
      return `    ${field}: ${required ? type : `NotRequired[${type}]`}${text}`;
    });
    this.texts.push(`class ${name}(TypedDict):\n${lines.join("\n")}`);
    return name;
  }

  #newName(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#taken.has(name); count += 1) name = `${wanted}${count}`;
    this.#taken.add(name);
    return name;
  }
}

/** Falls back to a general type for values without a literal type in Python. */
function literalText(values: readonly unknown[]): string {
  const plain = values.every(
    (value) => value === null || ["string", "boolean"].includes(typeof value) || Number.isInteger(value),
  );
  if (!plain || values.length === 0) return "Any";
  const texts = values.map((value) =>
    value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value),
  );
  return `Literal[${texts.join(", ")}]`;
}

function camel(name: string): string {
  return name.replaceAll(/(?:^|_+)(.)/g, (_, letter: string) => letter.toUpperCase());
}

function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim();
}

function docstring(description: string, parameters: readonly SchemaField[]): string {
  const told = parameters.flatMap(({ name, description: text }) =>
    text === undefined ? [] : [`    ${name}: ${oneLine(text)}`],
  );
  const text = [description.trim(), ...(told.length === 0 ? [] : [`\nArgs:\n${told.join("\n")}`])]
    .join("\n")
    .replaceAll(/(?![\n\t])\p{Cc}/gu, " ")
    .trim();
  if (text === "") return "";
  const quoted = text.replaceAll(/\\|"""|"$/g, (found) => found.replaceAll(/./g, "\\$&"));
  const indented = quoted.replaceAll(/\n(?!\n)/g, "\n    ");
  return `    """${indented}${indented.includes("\n") ? "\n    " : ""}"""\n`;
}
