import type { FunctionWithRequirements } from "@fenced/core";

const defaultTemplate = `These functions are ready to use. Import them from the module \`$module_name\` by their names:

$functions`;

/**
 * What a model is told about the functions: signatures and docstrings in a fence for each language, no bodies.
 *
 * @param template - text in which `$module_name` and `$functions` are replaced.
 * @returns an empty string if there are no functions.
 */
export function formatFunctions(
  functions: readonly FunctionWithRequirements[],
  moduleName: string,
  template: string = defaultTemplate,
): string {
  if (functions.length === 0) return "";
  const fences = (["python", "javascript"] as const)
    .map((language) => functions.filter((each) => each.language === language).map(functionStub))
    .map((stubs, index) => fence(index === 0 ? "python" : "javascript", stubs));
  const text = fences.filter((each) => each !== "").join("\n\n");
  return template.replaceAll("$module_name", () => moduleName).replaceAll("$functions", () => text);
}

/** Signature and docstring of a function, in its own language, without its body. */
export function functionStub(each: FunctionWithRequirements): string {
  return each.language === "python" ? pythonStub(each) : javaScriptStub(each);
}

function pythonStub({ signature, docstring }: FunctionWithRequirements): string {
  if (docstring === undefined) return `${signature}\n    ...`;
  const quoted = docstring.replaceAll(/\\|"""|"$/g, (found) => found.replaceAll(/./g, "\\$&"));
  return `${signature}\n    """${quoted.replaceAll(/\n(?!\n)/g, "\n    ")}"""\n    ...`;
}

function javaScriptStub({ signature, docstring }: FunctionWithRequirements): string {
  if (docstring === undefined) return `${signature};`;
  return `/**\n * ${docstring.replaceAll("*/", "*\\/").replaceAll("\n", "\n * ")}\n */\n${signature};`;
}

function fence(language: string, stubs: readonly string[]): string {
  if (stubs.length === 0) return "";
  const text = stubs.join("\n\n");
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const mark = "`".repeat(longest + 1);
  return `${mark}${language}\n${text}\n${mark}`;
}
