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

describe("making one", () => {
  test("from Python source", () => {
    const made = FunctionWithRequirements.fromString(`\n  ${python}\n`, requirements);
    expect(made).toMatchObject({ language: "python", name: "load", source: python, signature: "def load(path):" });
    expect(made.docstring).toBeUndefined();
    expect(made.requirements).toEqual(requirements);
  });

  test("from a JavaScript function", () => {
    const made = FunctionWithRequirements.fromCallable(double, { npmPackages: ["lodash@^4"] });
    expect(made).toMatchObject({ language: "javascript", name: "double", signature: "function double(value)" });
    expect(made.requirements).toEqual({ npmPackages: ["lodash@^4"] });
  });

  test("without requirements", () => {
    expect(FunctionWithRequirements.fromString(python).requirements).toEqual({});
    expect(FunctionWithRequirements.fromCallable(double).requirements).toEqual({});
  });

  test("with withRequirements, from either", () => {
    const make = withRequirements({ globalImports: ["os"] });
    expect(make(python)).toEqual(FunctionWithRequirements.fromString(python, { globalImports: ["os"] }));
    expect(make(double)).toEqual(FunctionWithRequirements.fromCallable(double, { globalImports: ["os"] }));
  });

  test("broken source throws at once", () => {
    expect(() => withRequirements({})("def f(:")).toThrow(InvalidInputError);
  });

  test("it keeps nothing of the object that it was given", () => {
    const packages = ["pandas"];
    const given = { pythonPackages: packages };
    const made = FunctionWithRequirements.fromString(python, given);
    packages.push("numpy");
    expect(made.requirements).toEqual({ pythonPackages: ["pandas"] });
    expect(Object.isFrozen(made.requirements)).toBe(true);
    expect(Object.isFrozen(made.requirements.pythonPackages)).toBe(true);
  });
});

describe("requirements that do not fit are refused", () => {
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
  ])("but not the Python package %j", (name) => {
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
  ])("nor the npm package %j", (name) => {
    expect(javaScriptWith({ npmPackages: [name] })().requirements.npmPackages).toEqual([name]);
  });

  test.each(["", "   ", "-r", "--index-url=http://localhost", " -e .", "a\nb", "a\r-r b", "a\0", "a\u2028b", "\n-r b"])(
    "%j is no package",
    (name) => {
      expect(pythonWith({ pythonPackages: ["pandas", name] })).toThrow(InvalidInputError);
      expect(javaScriptWith({ npmPackages: [name] })).toThrow(InvalidInputError);
    },
  );

  test("packages of the other language", () => {
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
    ["nothing", ""],
    ["a keyword as alias", new Alias("numpy", "class")],
    ["a dollar sign", new Alias("numpy", "$")],
    ["a default export", new Alias("node:fs", "fs")],
    ["a keyword to import", new ImportFromModule("os", ["None"])],
    ["a plain object with code in it", { name: "os", alias: "os\nprint(1)" }],
    ["a plain object with code in its module", { module: "os import path\n", imports: ["path"] }],
    ["a plain object with code in its names", { module: "os", imports: [{ name: "path", alias: "p; print(1)" }] }],
  ])("a Python import with %s", (_what, entry) => {
    expect(pythonWith({ globalImports: [entry] })).toThrow(InvalidInputError);
  });

  test.each<[string, NonNullable<FunctionRequirements["globalImports"]>[number]]>([
    ["a Python module", "os.path.join()"],
    ["a URL", "https://localhost/a.js"],
    ["a data: URL", "data:text/javascript,1"],
    ["a path that climbs", "../a.js"],
    ["a path that climbs later", "./a/../../b.js"],
    ["a quote", 'fs"; process.exit(); "'],
    ["a reserved word as alias", new Alias("lodash", "delete")],
    ["a reserved word to import", new ImportFromModule("lodash", ["default"])],
  ])("a JavaScript import with %s", (_what, entry) => {
    expect(javaScriptWith({ globalImports: [entry] })).toThrow(InvalidInputError);
  });

  test("but not those that JavaScript has", () => {
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
  test("there and back", () => {
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

  test("has only what cannot be found out from the source", () => {
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

  test("imports come back as what they were", () => {
    const json = FunctionWithRequirements.fromString(python, requirements).toJSON();
    const [, alias, from] = FunctionWithRequirements.fromJSON(json).requirements.globalImports ?? [];
    expect(alias).toBeInstanceOf(Alias);
    expect(from).toBeInstanceOf(ImportFromModule);
  });

  test("may leave the requirements out", () => {
    expect(FunctionWithRequirements.fromJSON({ language: "python", source: python }).requirements).toEqual({});
  });

  test.each<[string, JsonValue, string]>([
    ["no object", "text", "expected object"],
    ["another language", { language: "ruby", source: "" }, "language: "],
    ["no source", { language: "python" }, "source: "],
    ["broken source", { language: "python", source: "def f(:" }, "line 1, column 6"],
    ["an unknown key", { language: "python", source: python, name: "load" }, '"name"'],
    [
      "packages that are no list",
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
  ])("with %s is refused", (_what, json, expected) => {
    expect(() => FunctionWithRequirements.fromJSON(json)).toThrow(InvalidInputError);
    expect(() => FunctionWithRequirements.fromJSON(json)).toThrow(expected);
  });
});

describe("what JavaScript may pass", () => {
  const { fromString, fromCallable } = FunctionWithRequirements;
  test.each<[string, (...parameters: never[]) => unknown, readonly unknown[], string]>([
    ["no source", fromString, [5], '"source" is 5. It must be a string.'],
    ["no function", fromCallable, ["double"], '"callable" is not valid. It must be a function.'],
    ["another language's style", fromString, [python, { python_packages: ["x"] }], 'Did you mean "pythonPackages"?'],
    ["a name alone", fromString, [python, { pythonPackages: "pandas" }], '"pythonPackages" is a string.'],
    ["an import that is none", fromString, [python, { globalImports: [{ name: "numpy" }] }], '"globalImports[0]"'],
    ["no object", fromString, [python, null], "the options are null"],
  ])("is refused: %s", (_what, make, parameters, message) => {
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
  ])("is refused: new %o(%j)", (Class, parameters) => {
    const make = (): unknown => Reflect.construct(Class, parameters);
    expect(make).toThrow(InvalidInputError);
  });
});
