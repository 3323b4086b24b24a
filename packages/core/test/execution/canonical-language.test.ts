import { expect, test } from "vitest";
import { canonicalLanguage, languageAmong } from "../../src/index.ts";

test.each([
  ["python", "python"],
  ["py", "python"],
  ["Python3", "python"],
  [" PY ", "python"],
  ["bash", "bash"],
  ["shell", "sh"],
  ["sh", "sh"],
  ["PowerShell", "pwsh"],
  ["ps1", "pwsh"],
  ["js", "javascript"],
  ["node", "javascript"],
  ["mjs", "javascript"],
  ["TS", "typescript"],
  ["Ruby", "ruby"],
  ["", ""],
  ["constructor", "constructor"],
  ["__proto__", "__proto__"],
])("the canonical name of the language %j is %j", (written, canonical) => {
  expect(canonicalLanguage(written)).toBe(canonical);
});

test.each([
  ["Shell", ["sh", "bash"], "bash"],
  ["shell", ["sh"], "sh"],
  ["sh", ["sh", "bash"], "sh"],
  ["py", ["python"], "python"],
])("%j means, among %j, %j", (written, available, meant) => {
  expect(languageAmong(written, available)).toBe(meant);
});
