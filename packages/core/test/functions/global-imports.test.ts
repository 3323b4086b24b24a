import { describe, expect, test } from "vitest";
import { Alias, ImportFromModule, InvalidInputError } from "../../src/index.ts";

const injections = [
  "",
  " ",
  "a b",
  "a;b",
  "a\nb",
  "a\n",
  "a,b",
  "a(b)",
  "a'b",
  'a"b',
  "a`b",
  "a\\b",
  "a#b",
  "*",
  "../a",
  "/a",
  "https://localhost/a.js",
  "data:text/javascript,1",
  "file:///a.js",
];

describe("Alias", () => {
  test("keeps its names", () => {
    expect(new Alias("matplotlib.pyplot", "plt")).toEqual({ name: "matplotlib.pyplot", alias: "plt" });
    expect(new Alias("@scope/name", "name").name).toBe("@scope/name");
    expect(new Alias("größe", "maß").alias).toBe("maß");
    expect(Object.isFrozen(new Alias("numpy", "np"))).toBe(true);
  });

  test.each(injections)("rejects %j", (name) => {
    expect(() => new Alias(name, "a")).toThrow(InvalidInputError);
    expect(() => new Alias("a", name)).toThrow(InvalidInputError);
  });

  test.each(["a.b", "a-b", "@a/b", "node:fs"])("rejects the alias %j, which only a module can have", (alias) => {
    expect(() => new Alias("a", alias)).toThrow(InvalidInputError);
  });
});

describe("ImportFromModule", () => {
  test("keeps its names in a list of its own", () => {
    const names = ["Path", new Alias("PurePath", "P")];
    const made = new ImportFromModule("pathlib", names);
    names.push("more");
    expect(made.module).toBe("pathlib");
    expect(made.imports).toEqual(["Path", new Alias("PurePath", "P")]);
    expect(Object.isFrozen(made)).toBe(true);
    expect(Object.isFrozen(made.imports)).toBe(true);
  });

  test("rejects an empty list", () => {
    expect(() => new ImportFromModule("pathlib", [])).toThrow("There are no names to import");
  });

  test.each(injections)("rejects %j", (name) => {
    expect(() => new ImportFromModule(name, ["a"])).toThrow(InvalidInputError);
    expect(() => new ImportFromModule("a", ["b", name])).toThrow(InvalidInputError);
    expect(() => new ImportFromModule("a", [{ name, alias: "b" }])).toThrow(InvalidInputError);
    expect(() => new ImportFromModule("a", [{ name: "b", alias: name }])).toThrow(InvalidInputError);
  });

  test.each(["a.b", "@a/b", "node:fs"])("rejects %j as a name to import", (name) => {
    expect(() => new ImportFromModule("a", [name])).toThrow(InvalidInputError);
    expect(() => new ImportFromModule("a", [new Alias(name, "b")])).toThrow(InvalidInputError);
  });
});
