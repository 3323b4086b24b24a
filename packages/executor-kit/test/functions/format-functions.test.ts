import { FunctionWithRequirements } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { formatFunctions, functionStub } from "../../src/functions/format-functions.ts";

const load = FunctionWithRequirements.fromString(`
    def load(path: str = "a", *rest) -> "list":
        """Loads.

        Two lines."""
        return [secret_body]
`);
const bare = FunctionWithRequirements.fromString("async def bare(): return 1");
// Not from a callable: the test runner's transformation drops comments.
const callable = FunctionWithRequirements.fromJSON({
  language: "javascript",
  source: "function double(value) {\n  /* Doubles. */\n  return value * 2;\n}",
  requirements: {},
});

describe("functionStub", () => {
  it("shows signature and docstring, not the body", () => {
    expect(functionStub(load)).toBe(
      'def load(path: str = "a", *rest) -> "list":\n    """Loads.\n\n    Two lines."""\n    ...',
    );
    expect(functionStub(bare)).toBe("async def bare():\n    ...");
  });

  it("keeps a docstring with quotes and backslashes valid Python", () => {
    const quoted = FunctionWithRequirements.fromString(
      `def q():\n    'ends "with" """three""" and a "quote"'\n    pass`,
    );
    expect(functionStub(quoted)).toBe(
      'def q():\n    """ends "with" \\"\\"\\"three\\"\\"\\" and a "quote\\""""\n    ...',
    );
    const three = FunctionWithRequirements.fromString(`def q():\n    'ends with """'\n    pass`);
    expect(functionStub(three)).toBe('def q():\n    """ends with \\"\\"\\""""\n    ...');
  });
});

describe("formatFunctions", () => {
  it("fills the template", () => {
    expect(formatFunctions([bare], "tools", "$module_name has\n$functions")).toBe(
      "tools has\n```python\nasync def bare():\n    ...\n```",
    );
  });

  it("names the module by default, with one code fence for each language", () => {
    const text = formatFunctions([callable, load, bare], "functions");
    expect(text).toContain("module `functions`");
    expect(text.match(/^```\w+$/gm)).toEqual(["```python", "```javascript"]);
    expect(text).not.toContain("secret_body");
    expect(text).toContain("Doubles.");
  });

  it("is empty without functions", () => {
    expect(formatFunctions([], "functions", "Use $functions")).toBe("");
  });

  it("does not let a docstring end the fence, or fill the template again", () => {
    const tricky = FunctionWithRequirements.fromString(
      'def t():\n    """$module_name\n    ```\n    $functions"""\n    pass',
    );
    const text = formatFunctions([tricky], "m", "$functions");
    expect(text.startsWith("````python\n")).toBe(true);
    expect(text).toContain("$functions");
  });
});
