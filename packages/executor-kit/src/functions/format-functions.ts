import type { FunctionWithRequirements, HostFunction } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import { pythonStubs } from "../host-calls/stubs/python-stubs.ts";
import { typeScriptDeclarations } from "../host-calls/stubs/typescript-stubs.ts";

const templateArgument = z.object({ template: z.string() });

const defaultTemplate = `These functions are ready to use. Import them from the module \`$module_name\` by their names:

$functions`;

/** Host functions, and the languages whose programs can call them. */
export interface OfferedHostFunctions {
  readonly functions: readonly HostFunction[];
  readonly languages: readonly string[];
}

/**
 * Describes the functions to a model: signatures and docstrings without bodies, in a fence for each language.
 *
 * @param template - text in which `$module_name` and `$functions` are replaced.
 * @param host - the host functions. Default: none.
 * @returns an empty string if there are no functions.
 */
export function formatFunctions(
  functions: readonly FunctionWithRequirements[],
  moduleName: string,
  template: string = defaultTemplate,
  host: OfferedHostFunctions = { functions: [], languages: [] },
): string {
  checkOptions(templateArgument, { template }, "formatFunctionsForPrompt");
  if (functions.length + host.functions.length === 0) return "";
  const stubs = (language: string): string[] =>
    functions.filter((each) => each.language === language).map(functionStub);
  const python = host.languages.includes("python") ? pythonStubs(host.functions, () => "") : [];
  const typescript = runsJavaScript(host) ? typeScriptDeclarations(host.functions, "declare") : "";
  const texts = [
    fence("python", [...stubs("python"), ...python]),
    fence("javascript", stubs("javascript")),
    fence("typescript", typescript === "" ? [] : [typescript]),
    howToCall(host, moduleName),
  ];
  const text = texts.filter((each) => each !== "").join("\n\n");
  return template.replaceAll("$module_name", () => moduleName).replaceAll("$functions", () => text);
}

function runsJavaScript({ languages }: OfferedHostFunctions): boolean {
  return languages.includes("javascript") || languages.includes("typescript");
}

/** Explains what the signatures of host functions do not say. */
function howToCall(host: OfferedHostFunctions, moduleName: string): string {
  const [first] = host.functions;
  if (!first) return "";
  const list = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");
  const names = list(host.functions.map(({ name }) => name));
  const shells = host.languages.filter((language) => ["bash", "sh"].includes(language));
  const sentences = [
    `These run outside, where they have what they need, and raise \`HostFunctionError\` if they fail: ${names}.`,
    host.languages.includes("python")
      ? `In Python they wait for their result; to call several side by side, gather \`${first.name}.aio(...)\` with asyncio.`
      : "",
    runsJavaScript(host) ? "In JavaScript and TypeScript they are async and take one object." : "",
    shells.length > 0 ? `In ${list(shells)}: \`${moduleName} ${first.name} '{...}'\` takes and prints JSON.` : "",
  ];
  return sentences.filter((each) => each !== "").join(" ");
}

/** A function's signature and docstring in its own language, without its body. */
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
