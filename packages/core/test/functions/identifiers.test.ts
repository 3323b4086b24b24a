import { execFileSync } from "node:child_process";
import { needs } from "@fenced/test-support";
import { describe, expect, test } from "vitest";
import { isJavaScriptIdentifier, isPythonIdentifier } from "../../src/index.ts";

test.each([
  ["load_data", true, true],
  ["_", true, true],
  ["größe", true, true],
  ["名前", true, true],
  ["𝒳", true, true],
  ["match", true, true],
  ["print", true, true],
  ["$", false, true],
  ["a$b", false, true],
  ["class", false, false],
  ["None", false, true],
  ["lambda", false, true],
  ["delete", true, false],
  ["await", false, false],
  ["arguments", true, false],
  ["__proto__", true, true],
  ["", false, false],
  ["1a", false, false],
  ["a b", false, false],
  ["a-b", false, false],
  ["a.b", false, false],
  ["a\n", false, false],
  ["#a", false, false],
  ["½", false, false],
])("%j is an identifier in Python: %s, in JavaScript: %s", (name, python, javaScript) => {
  expect(isPythonIdentifier(name)).toBe(python);
  expect(isJavaScriptIdentifier(name)).toBe(javaScript);
});

describe("Python's keywords", needs("python3"), () => {
  test("are not identifiers", () => {
    const printed = execFileSync("python3", ["-c", "import keyword; print(*keyword.kwlist)"], { encoding: "utf8" });
    expect(printed.trim().split(" ").filter(isPythonIdentifier)).toEqual([]);
  });
});
