import { InvalidInputError } from "@fenced/core";
import { blockEnvironment, blockSource, defaultLanguages, languageTable } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

describe("languageTable", () => {
  it("merges a user's languages over the defaults, under canonical names", () => {
    const ruby = { extension: "rb", command: ["ruby"] };
    const node = { extension: "mjs", command: ["deno", "run"] };
    const table = languageTable({ Ruby: ruby, JS: node });
    expect(Object.keys(table)).toEqual([...Object.keys(defaultLanguages), "ruby"]);
    expect(table["ruby"]).toBe(ruby);
    expect(table["javascript"]).toBe(node);
    expect(defaultLanguages["javascript"]).not.toBe(node);
  });

  it.each([
    { extension: ".rb", command: ["ruby"] },
    { extension: "../x", command: ["ruby"] },
    { extension: "rb", command: [] },
    { extension: "rb", command: [""] },
  ])("rejects %j", (entry) => {
    expect(() => languageTable({ ruby: entry })).toThrow(InvalidInputError);
  });
});

describe("blockSource", () => {
  it("removes carriage returns from the line endings of shell scripts only", () => {
    expect(blockSource("bash", "a\r\nb\r\n")).toBe("a\nb\n");
    expect(blockSource("sh", "printf 'a\rb'\r\n")).toBe("printf 'a\rb'\n");
    expect(blockSource("python", "a\r\nb")).toBe("a\r\nb");
  });
});

describe("blockEnvironment", () => {
  it("keeps pip quiet", () => {
    expect(blockEnvironment).toMatchObject({ PIP_QUIET: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1", PIP_NO_INPUT: "1" });
  });
});
