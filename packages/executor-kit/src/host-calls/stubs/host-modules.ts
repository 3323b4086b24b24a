import { readFileSync } from "node:fs";
import type { HostFunction } from "@fenced/core";
import { pythonParameters, pythonStubs } from "./python-stubs.ts";
import { typeScriptDeclarations } from "./typescript-stubs.ts";

/** The Python program that carries calls, as a module and for the shell command. */
export const pythonRuntime: string = readFileSync(new URL("./host_calls.py", import.meta.url), "utf8");
/** The same in JavaScript. */
export const javaScriptRuntime: string = readFileSync(new URL("./host-calls.mjs", import.meta.url), "utf8");
/** The shell command, with placeholders. */
export const commandProgram: string = readFileSync(new URL("./command.sh", import.meta.url), "utf8");

/** The module that carries calls. */
const runtimeModule = "_fenced_host_calls";
const pythonImports = `from __future__ import annotations

import typing
from typing import Any, Literal, TypedDict

from ${runtimeModule} import HostFunctionError, host_function as _host_function

NotRequired = getattr(typing, "NotRequired", None)`;

/** The files next to a Python functions module, by name, and the lines with which it includes the host functions. */
export function pythonHostModule(
  functions: readonly HostFunction[],
  moduleName: string,
): { readonly files: Readonly<Record<string, string>>; readonly lines: string } {
  if (functions.length === 0) return { files: {}, lines: "" };
  const own = `_${moduleName}_host`;
  const decorator = (each: HostFunction): string =>
    `@_host_function(${JSON.stringify(each.name)}, ${JSON.stringify(pythonParameters(each))})\n`;
  const stubs = `${[pythonImports, ...pythonStubs(functions, decorator)].join("\n\n\n")}\n`;
  const names = ["HostFunctionError", ...functions.map(({ name }) => name)];
  return {
    files: { [`${runtimeModule}.py`]: pythonRuntime, [`${own}.py`]: stubs },
    lines: `from ${own} import ${names.join(", ")}\n`,
  };
}

/**
 * The files of a JavaScript functions package, by name, and the lines with which its module includes the host
 * functions.
 */
export function javaScriptHostModule(functions: readonly HostFunction[]): {
  readonly files: Readonly<Record<string, string>>;
  readonly lines: string;
} {
  if (functions.length === 0) return { files: {}, lines: "" };
  const stubs = functions.map(
    ({ name }) => `export async function ${name}(input) {
  return callHost(${JSON.stringify(name)}, input);
}\n`,
  );
  const error =
    "/** A host function failed; `name` is the name of its error. */\nexport class HostFunctionError extends Error {}";
  return {
    files: {
      "host-calls.mjs": javaScriptRuntime,
      "host.mjs": `import { callHost } from "./host-calls.mjs";\n\n${stubs.join("\n")}`,
      "index.d.ts": `${[error, typeScriptDeclarations(functions, "export")].join("\n\n")}\n`,
    },
    lines: 'export { HostFunctionError } from "./host-calls.mjs";\nexport * from "./host.mjs";\n',
  };
}
