import type { JavaScriptStructure } from "./javascript-structure.ts";

/** A function's head on one line, whichever form it is written in: `async function add(a, b = 1)`. */
export function javaScriptSignature(name: string, structure: JavaScriptStructure): string {
  const { text, isAsync, isGenerator } = structure;
  const { node, shift } = structure.parameters;
  const literals: string[] = [];
  let list = "";
  let position = node.from + shift;
  node.cursor().iterate(({ type, from, to }) => {
    const isLiteral = type.name === "String" || type.name === "TemplateString" || type.name === "RegExp";
    const isComment = type.name.endsWith("Comment");
    if (!isLiteral && !isComment && type.name !== "Equals") return true;
    const kept = isComment ? " " : " = ";
    list += text.slice(position, from + shift) + (isLiteral ? placeholder(literals.length) : kept);
    if (isLiteral) literals.push(onOneLine(text.slice(from + shift, to + shift)));
    position = to + shift;
    return false;
  });
  list += text.slice(position, node.to + shift);
  const spaced = withoutBrackets(oneSpaceEach(list));
  const parameters = spaced.replaceAll(/\0(\d+)\0/g, (_, index: string) => literals[Number(index)] ?? "");
  return `${isAsync ? "async " : ""}function${isGenerator ? "*" : ""} ${name}(${parameters})`;
}

/** Replaces a literal while the surrounding white space is normalized; no source contains a NUL. */
function placeholder(index: number): string {
  return `\0${index}\0`;
}

function oneSpaceEach(text: string): string {
  return text
    .replaceAll(/\s+/g, " ")
    .replaceAll(/(?<=[([]) | (?=[)\],])/g, "")
    .replaceAll(/,(?! )/g, ", ")
    .trim();
}

function withoutBrackets(parameters: string): string {
  const inner = /^\((.*)\)$/.exec(parameters)?.[1] ?? parameters;
  return inner.replace(/,\s*$/, "");
}

function onOneLine(literal: string): string {
  return literal.startsWith("`") ? literal.replaceAll("\n", String.raw`\n`) : literal.replaceAll("\\\n", "");
}
