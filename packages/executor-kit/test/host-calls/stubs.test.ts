import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { FunctionWithRequirements, hostFunction, type JsonSchema } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { formatFunctions } from "../../src/functions/format-functions.ts";
import { javaScriptHostModule, pythonHostModule } from "../../src/host-calls/stubs/host-modules.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const made = (name: string, input: JsonSchema, output?: JsonSchema, description = "Does it.") =>
  hostFunction({ name, description, input, ...(output ? { output } : {}), execute: () => undefined });

const search = made(
  "search",
  {
    type: "object",
    properties: {
      limit: { type: ["integer", "null"], description: "At most\nso many" },
      text: { type: "string" },
      kind: { enum: ["a", 'b"', null, 3, true] },
      "not-a-name": { type: "boolean" },
      where: { $ref: "#/$defs/place" },
    },
    required: ["text", "where"],
    $defs: { place: { type: "object", properties: { inner: { $ref: "#/$defs/place" }, lat: { type: "number" } } } },
  },
  {
    type: "array",
    items: {
      type: "object",
      properties: { id: { type: "string" }, tags: { type: "array", items: { type: "string" } } },
      required: ["id"],
    },
  },
  'Searches. */ """ \\ "',
);
const free = made("free", { type: "object" });
// Each of these could keep the module from loading: a reserved name, two that Python takes for one, half a character.
const odd = made("odd", { type: "object", properties: { __debug__: {}, ﬁ: {}, fi: { description: "\ud800" } } });
const functions = [search, free, odd];
const languages = ["python", "javascript", "bash"];

describe("the prompt about host functions", () => {
  const text = formatFunctions([], "functions", undefined, { functions, languages });

  it("has signatures with types in Python, required arguments first", () => {
    expect(text).toContain(
      'def search(text: str, where: SearchWhere, limit: int | None = ..., kind: Literal["a", "b\\"", None, 3, True] = ..., **others: Any) -> list[SearchResult]:',
    );
    expect(text).toContain("class SearchResult(TypedDict):\n    id: str\n    tags: NotRequired[list[str]]");
    expect(text).toContain("        limit: At most so many");
    expect(text).toContain("def free(**others: Any) -> Any:");
  });

  it("has declarations in TypeScript, with invalid names in quotes", () => {
    expect(text).toContain('  kind?: "a" | "b\\"" | null | 3 | true;\n  "not-a-name"?: boolean;');
    expect(text).toContain("/** Searches. *\\/");
    expect(text).toContain("declare function free(input?: Record<string, unknown>): Promise<unknown>;");
  });

  it("says how shells call them, and names available languages only", () => {
    expect(text).toContain("In `bash`: `functions search '{...}'`");
    const only = formatFunctions([], "functions", undefined, { functions, languages: ["python"] });
    expect(only).not.toMatch(/typescript|JavaScript|bash/);
  });

  it("stays short for definitions that are recursive or repeat others many times", () => {
    const five = (reference: string): object => ({
      type: "object",
      properties: Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, { $ref: reference }])),
    });
    const levels = Array.from({ length: 9 }, (_, level) => [`l${level}`, five(`#/$defs/l${level + 1}`)]);
    const $defs = { node: five("#/$defs/node"), l9: { type: "number" }, ...Object.fromEntries(levels) };
    const properties = { tree: { $ref: "#/$defs/node" }, many: { $ref: "#/$defs/l0" } };
    const wide = [made("wide", { type: "object", properties, $defs })];
    const told = formatFunctions([], "functions", undefined, { functions: wide, languages });
    expect(told).toContain("class WideTree(TypedDict):\n    a: NotRequired[Any]");
    expect(told).toContain("tree?: { a?: unknown; b?: unknown;");
    expect(told.length).toBeLessThan(200_000);
  });

  it("adds them to the functions that travel to the code", () => {
    const travelling = FunctionWithRequirements.fromString("def load(): return 1");
    const both = formatFunctions([travelling], "functions", undefined, { functions: [free], languages: ["python"] });
    expect(both.match(/```python/g)).toHaveLength(1);
    expect(both).toMatch(/def load\(\)[^]*def free\(/);
  });
});

describe("the modules that programs import", () => {
  it("are Python that loads without a host", needs("python3"), async () => {
    const directory = await temporaryDirectory();
    const { files, lines } = pythonHostModule(functions, "functions");
    for (const [name, content] of Object.entries({ ...files, "functions.py": lines })) {
      await writeFile(path.join(directory, name), content);
    }
    const code = `import inspect, functions
print(list(inspect.signature(functions.search).parameters), list(inspect.signature(functions.odd).parameters))
try:
    functions.search("x", text="y")
except TypeError as error:
    print(error)
try:
    functions.free()
except functions.HostFunctionError as error:
    print(error.name)
`;
    const { stdout } = await promisify(execFile)("python3", ["-c", code], { cwd: directory });
    expect(stdout).toBe(
      "['text', 'where', 'limit', 'kind', 'others'] ['fi', 'others']\nsearch() got multiple values for argument 'text'\nNotConnectedError\n",
    );
  });

  it("are JavaScript that loads without a host", needs("node"), async () => {
    const directory = path.join(await temporaryDirectory(), "functions");
    await mkdir(directory);
    const { files, lines } = javaScriptHostModule(functions);
    for (const [name, content] of Object.entries({ ...files, "index.mjs": lines })) {
      await writeFile(path.join(directory, name), content);
    }
    const code = `import * as all from ${JSON.stringify(path.join(directory, "index.mjs"))};
console.log(Object.keys(all).join(), await all.free().catch((error) => error.name));`;
    const { stdout } = await promisify(execFile)("node", ["--input-type=module", "-e", code]);
    expect(stdout).toBe("HostFunctionError,free,odd,search NotConnectedError\n");
  });
});
