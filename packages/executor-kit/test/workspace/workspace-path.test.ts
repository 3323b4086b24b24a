import { WorkspacePathError } from "@fenced/core";
import { filenameDirective, normalizeWorkspacePath } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

describe("normalizeWorkspacePath", () => {
  it.each([
    ["a.py", "a.py"],
    ["./a/b.py", "a/b.py"],
    ["a//b/../c.py", "a/c.py"],
    ["a b/ü.txt", "a b/ü.txt"],
    ["..a/b", "..a/b"],
    [".", "."],
    ["dir/", "dir"],
  ])("turns %j into %j", (given, expected) => {
    expect(normalizeWorkspacePath(given)).toBe(expected);
  });

  it.each(["..", "../a", "a/../../b", "/etc/passwd", "", "a\0b"])("rejects %j", (given) => {
    expect(() => normalizeWorkspacePath(given)).toThrow(WorkspacePathError);
  });
});

describe("filenameDirective", () => {
  it.each([
    ["# filename: a.py\nx", "a.py"],
    ["#filename:a.py", "a.py"],
    ["// filename: src/a b.ts  \r\nx", "src/a b.ts"],
    ["# FILENAME: ../x\n", "../x"],
  ])("finds the path in %j", (code, expected) => {
    expect(filenameDirective(code)).toBe(expected);
  });

  it.each(["x\n# filename: a.py", "# filename:\nx", "# file: a.py", "", " # filename: a.py"])(
    "finds no path in %j",
    (code) => {
      expect(filenameDirective(code)).toBeUndefined();
    },
  );
});
