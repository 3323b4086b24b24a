import { describe, expect, test } from "vitest";
import {
  Alias,
  FunctionWithRequirements,
  ImportFromModule,
  InvalidInputError,
  withRequirements,
  type FunctionRequirements,
  type JsonValue,
} from "../../src/index.ts";

const python = "def load(path): return pandas.read_csv(path)";
const requirements: FunctionRequirements = {
  pythonPackages: ["pandas>=2"],
  globalImports: [
    "pandas",
    new Alias("numpy", "np"),
    new ImportFromModule("pathlib", ["Path", new Alias("PurePath", "P")]),
  ],
};

function double(value: number): number {
  return value * 2;
}

describe("FunctionWithRequirements", () => {
  test("is made from Python source", () => {
    const made = FunctionWithRequirements.fromString(`\n  ${python}\n`, requirements);
    expect(made).toMatchObject({ language: "python", name: "load", source: python, signature: "def load(path):" });
    expect(made.docstring).toBeUndefined();
    expect(made.requirements).toEqual(requirements);
  });

  test("is made from a JavaScript function", () => {
    const made = FunctionWithRequirements.fromCallable(double, { npmPackages: ["lodash@^4"] });
    expect(made).toMatchObject({ language: "javascript", name: "double", signature: "function double(value)" });
    expect(made.requirements).toEqual({ npmPackages: ["lodash@^4"] });
  });

  test("has no requirements by default", () => {
    expect(FunctionWithRequirements.fromString(python).requirements).toEqual({});
    expect(FunctionWithRequirements.fromCallable(double).requirements).toEqual({});
  });

  test("is made by withRequirements from either", () => {
    const make = withRequirements({ globalImports: ["os"] });
    expect(make(python)).toEqual(FunctionWithRequirements.fromString(python, { globalImports: ["os"] }));
    expect(make(double)).toEqual(FunctionWithRequirements.fromCallable(double, { globalImports: ["os"] }));
  });

  test("throws on broken source at once", () => {
    expect(() => withRequirements({})("def f(:")).toThrow(InvalidInputError);
  });

  test("copies and freezes the given requirements", () => {
    const packages = ["pandas"];
    const given = { pythonPackages: packages };
    const made = FunctionWithRequirements.fromString(python, given);
    packages.push("numpy");
    expect(made.requirements).toEqual({ pythonPackages: ["pandas"] });
    expect(Object.isFrozen(made.requirements)).toBe(true);
    expect(Object.isFrozen(made.requirements.pythonPackages)).toBe(true);
  });
});

describe("requirements", () => {
  const pythonWith = (given: FunctionRequirements) => () => FunctionWithRequirements.fromString(python, given);
  const javaScriptWith = (given: FunctionRequirements) => () => FunctionWithRequirements.fromCallable(double, given);

  test.each([
    "pandas",
    "pandas>=2,<3",
    "pandas[excel]==2.*",
    'pandas; python_version < "3.13"',
    "pandas @ https://localhost/pandas.whl",
    "git+https://localhost/a/b.git@v1#egg=b",
    "./wheels/a b.whl",
    "/opt/wheels/a.whl",
    "  pandas  ",
  ])("accept the Python package %j", (name) => {
    expect(pythonWith({ pythonPackages: [name] })().requirements.pythonPackages).toEqual([name.trim()]);
  });

  test.each([
    "lodash",
    "lodash@^4",
    "@scope/name@1 || 2",
    "npm:other@1",
    "github:a/b#main",
    "file:../a",
    "https://localhost/a.tgz",
  ])("accept the npm package %j", (name) => {
    expect(javaScriptWith({ npmPackages: [name] })().requirements.npmPackages).toEqual([name]);
  });

  test.each(["", "   ", "-r", "--index-url=http://localhost", " -e .", "a\nb", "a\r-r b", "a\0", "a\u2028b", "\n-r b"])(
    "reject %j as a package",
    (name) => {
      expect(pythonWith({ pythonPackages: ["pandas", name] })).toThrow(InvalidInputError);
      expect(javaScriptWith({ npmPackages: [name] })).toThrow(InvalidInputError);
    },
  );

  test("reject packages of the other language", () => {
    expect(pythonWith({ npmPackages: ["lodash"] })).toThrow("A python function cannot require npmPackages");
    expect(javaScriptWith({ pythonPackages: ["pandas"] })).toThrow(
      "A javascript function cannot require pythonPackages",
    );
    expect(pythonWith({ npmPackages: [] })).not.toThrow();
  });

  test.each<[string, NonNullable<FunctionRequirements["globalImports"]>[number]]>([
    ["a JavaScript module", "node:fs"],
    ["a scoped package", "@scope/name"],
    ["a keyword", "import"],
    ["a keyword inside", "a.class"],
    ["a hyphen", "scikit-learn"],
    ["code", "os; print(1)"],
    ["a line break", "os\nprint(1)"],
    ["an empty name", ""],
    ["a keyword as alias", new Alias("numpy", "class")],
    ["a dollar sign", new Alias("numpy", "$")],
    ["a default export", new Alias("node:fs", "fs")],
    ["a keyword to import", new ImportFromModule("os", ["None"])],
    ["a plain object with code in it", { name: "os", alias: "os\nprint(1)" }],
    ["a plain object with code in its module", { module: "os import path\n", imports: ["path"] }],
    ["a plain object with code in its names", { module: "os", imports: [{ name: "path", alias: "p; print(1)" }] }],
  ])("reject a Python import with %s", (_what, entry) => {
    expect(pythonWith({ globalImports: [entry] })).toThrow(InvalidInputError);
  });

  test.each<[string, NonNullable<FunctionRequirements["globalImports"]>[number]]>([
    ["a Python module", "os.path.join()"],
    ["a URL", "https://localhost/a.js"],
    ["a data: URL", "data:text/javascript,1"],
    ["a path to a parent directory", "../a.js"],
    ["a path that leads to a parent directory later", "./a/../../b.js"],
    ["a quote", 'fs"; process.exit(); "'],
    ["a reserved word as alias", new Alias("lodash", "delete")],
    ["a reserved word to import", new ImportFromModule("lodash", ["default"])],
  ])("reject a JavaScript import with %s", (_what, entry) => {
    expect(javaScriptWith({ globalImports: [entry] })).toThrow(InvalidInputError);
  });

  test("accept JavaScript imports", () => {
    const globalImports = [
      "lodash",
      "node:fs/promises",
      "@scope/name/part.js",
      "./helpers.js",
      new Alias("node:fs", "fs"),
      new ImportFromModule("lodash", ["map", new Alias("default", "_"), new Alias("$get", "get")]),
    ];
    expect(javaScriptWith({ globalImports })().requirements.globalImports).toEqual(globalImports);
  });
});

describe("JSON", () => {
  test("restores an equal function", () => {
    for (const made of [
      FunctionWithRequirements.fromString(`@cache\n${python}`, requirements),
      FunctionWithRequirements.fromString(python, {}),
      FunctionWithRequirements.fromCallable(double, { npmPackages: ["lodash"], globalImports: ["lodash"] }),
    ]) {
      const text = JSON.stringify(made);
      expect(FunctionWithRequirements.fromJSON(JSON.parse(text) as JsonValue)).toEqual(made);
      expect(JSON.parse(text)).toEqual(made.toJSON());
    }
  });

  test("omits what can be derived from the source", () => {
    expect(FunctionWithRequirements.fromString(python, requirements).toJSON()).toEqual({
      language: "python",
      source: python,
      requirements: {
        pythonPackages: ["pandas>=2"],
        globalImports: [
          "pandas",
          { name: "numpy", alias: "np" },
          { module: "pathlib", imports: ["Path", { name: "PurePath", alias: "P" }] },
        ],
      },
    });
  });

  test("restores imports as instances of their classes", () => {
    const json = FunctionWithRequirements.fromString(python, requirements).toJSON();
    const [, alias, from] = FunctionWithRequirements.fromJSON(json).requirements.globalImports ?? [];
    expect(alias).toBeInstanceOf(Alias);
    expect(from).toBeInstanceOf(ImportFromModule);
  });

  test("may omit the requirements", () => {
    expect(FunctionWithRequirements.fromJSON({ language: "python", source: python }).requirements).toEqual({});
  });

  test.each<[string, JsonValue, string]>([
    ["a text", "text", "must be an object"],
    ["another language", { language: "ruby", source: "" }, "language: "],
    ["no source", { language: "python" }, "source: "],
    ["broken source", { language: "python", source: "def f(:" }, "the head of f has no"],
    ["an unknown key", { language: "python", source: python, name: "load" }, '"name"'],
    [
      "packages that are not a list",
      { language: "python", source: python, requirements: { pythonPackages: "a" } },
      "pythonPackages: ",
    ],
    [
      "code in an import",
      { language: "python", source: python, requirements: { globalImports: ["os\nx()"] } },
      "not the name",
    ],
    [
      "code in a name",
      { language: "python", source: python, requirements: { globalImports: [{ module: "os", imports: ["x()"] }] } },
      "cannot be",
    ],
  ])("with %s is rejected", (_what, json, expected) => {
    expect(() => FunctionWithRequirements.fromJSON(json)).toThrow(InvalidInputError);
    expect(() => FunctionWithRequirements.fromJSON(json)).toThrow(expected);
  });
});

describe("an invalid argument from JavaScript", () => {
  const { fromString, fromCallable } = FunctionWithRequirements;
  test.each<[string, (...parameters: never[]) => unknown, readonly unknown[], string]>([
    ["no source", fromString, [5], '"source" is 5. It must be a string.'],
    ["no function", fromCallable, ["double"], '"callable" is not valid. It must be a function.'],
    ["an option in snake_case", fromString, [python, { python_packages: ["x"] }], 'Did you mean "pythonPackages"?'],
    ["a string instead of a list", fromString, [python, { pythonPackages: "pandas" }], '"pythonPackages" is a string.'],
    ["an invalid import", fromString, [python, { globalImports: [{ name: "numpy" }] }], '"globalImports[0]"'],
    ["null options", fromString, [python, null], "the options are null"],
  ])("is rejected: %s", (_what, make, parameters, message) => {
    const call = (): unknown => Reflect.apply(make, FunctionWithRequirements, parameters);
    expect(call).toThrow(InvalidInputError);
    expect(call).toThrow(message);
  });

  test.each<[new (...parameters: never[]) => unknown, readonly unknown[]]>([
    [Alias, []],
    [Alias, [5, "a"]],
    [Alias, ["numpy", {}]],
    [ImportFromModule, ["pathlib"]],
    [ImportFromModule, [{}, ["Path"]]],
    [ImportFromModule, ["pathlib", [5]]],
    [ImportFromModule, ["pathlib", [null]]],
  ])("is rejected: new %o(%j)", (Class, parameters) => {
    const make = (): unknown => Reflect.construct(Class, parameters);
    expect(make).toThrow(InvalidInputError);
  });
});
