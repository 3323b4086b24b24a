import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import {
  ComponentError,
  InvalidInputError,
  loadComponent,
  ModelClientError,
  parseComponentConfig,
  type ComponentContext,
  type ComponentModel,
  type JsonObject,
} from "../../src/index.ts";

class Leaf {
  static readonly componentType = "leaf";
  static readonly componentVersion = 2;
  readonly name: string;

  constructor(name: string) {
    if (name === "") throw new InvalidInputError("The name is empty", { remedy: "Give a name." });
    this.name = name;
  }

  static fromConfig(config: JsonObject, context: ComponentContext): Leaf {
    return new this(parseComponentConfig(z.strictObject({ name: z.string() }), config, context.provider).name);
  }
}

class Tree {
  readonly leaves: readonly Leaf[];

  constructor(leaves: readonly Leaf[]) {
    this.leaves = leaves;
  }

  static async fromConfig(config: JsonObject, context: ComponentContext): Promise<Tree> {
    const { leaves } = z.strictObject({ leaves: z.array(z.custom<ComponentModel>()) }).parse(config);
    return new Tree(await Promise.all(leaves.map((model, index) => context.load<Leaf>(model, `leaves[${index}]`))));
  }
}

const Failing = Object.assign(() => 1, {
  fromConfig(config: JsonObject): never {
    if (config["how"] === "model") throw new ModelClientError("No answer", { remedy: "Ask again." });
    // oxlint-disable-next-line typescript/only-throw-error -- other people's code may throw anything
    if (config["how"] === "string") throw "just words";
    throw new TypeError("something is undefined");
  },
});

type ImportModule = (specifier: string) => Promise<unknown>;

const exports = { Leaf, Tree, Failing, notAClass: { fromConfig: () => 1 }, NoFromConfig: Date, text: "text" };

function leaf(changes: Partial<ComponentModel> = {}): ComponentModel {
  return { provider: "@fenced/x:Leaf", componentType: "leaf", version: 2, config: { name: "a" }, ...changes };
}

function asJson({ provider, componentType, version, config }: ComponentModel): JsonObject {
  return { provider, componentType, version, config };
}

function tree(...leaves: ComponentModel[]): ComponentModel {
  return { provider: "@fenced/x:Tree", componentType: "tree", version: 1, config: { leaves: leaves.map(asJson) } };
}

async function load(model: ComponentModel, allow?: readonly string[]): Promise<unknown> {
  return loadComponent(model, { importModule: async () => exports, ...(allow && { allow }) });
}

async function loadError(model: ComponentModel): Promise<ComponentError> {
  const error = await load(model).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (ComponentError.isInstance(error)) return error;
  throw new Error(`not a ComponentError: ${String(error)}`);
}

describe("a valid component", () => {
  test("is created by the provider's fromConfig", async () => {
    const made = await loadComponent<Leaf>(leaf(), { importModule: async () => exports });
    expect(made).toBeInstanceOf(Leaf);
    expect(made.name).toBe("a");
  });

  test("can contain others, which are loaded with the same options", async () => {
    const importModule = vi.fn<ImportModule>(async () => exports);
    const model = tree(leaf(), leaf({ provider: "my-leaves:Leaf", config: { name: "b" } }));
    const made = await loadComponent<Tree>(model, { allow: ["my-leaves"], importModule });
    expect(made.leaves.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(importModule.mock.calls).toEqual([["@fenced/x"], ["@fenced/x"], ["my-leaves"]]);
  });

  test("can have any type and version if its class declares none", async () => {
    await expect(load({ ...tree(), componentType: "anything", version: 7 })).resolves.toBeInstanceOf(Tree);
  });
});

describe("a package that is not allowed", () => {
  test.each([
    "left-pad:Leaf",
    "fenced:Leaf",
    "@fencedx/y:Leaf",
    "@fenced:Leaf",
    "@fenced/:Leaf",
    "@fenced/.:Leaf",
    "@fenced/..:Leaf",
    "@fenced/../evil:Leaf",
    "@fenced/..%2fevil:Leaf",
    "@fenced/x/../../evil:Leaf",
    "@fenced/x/sub:Leaf",
    "@fenced/x\\..\\..\\evil:Leaf",
    "@fenced/x?evil:Leaf",
    "@fenced/x#evil:Leaf",
    "@fenced//x:Leaf",
    "@Fenced/x:Leaf",
    "@FENCED/x:Leaf",
    "@fenced/X:Leaf",
    "@ﬀenced/x:Leaf",
    "./evil.js:Leaf",
    "../evil.js:Leaf",
    "/tmp/evil.js:Leaf",
    "C:\\evil.js:Leaf",
    "node:child_process:exec",
    "fs:readFile",
    "file:///tmp/evil.js:Leaf",
    "https://localhost/evil.js:Leaf",
    "data:text/javascript,export class Leaf {}:Leaf",
    "data:text/javascript,1:Leaf",
    "npm:@fenced/x:Leaf",
    "#fenced/x:Leaf",
    "",
    ":",
    ":Leaf",
    "@fenced/x",
    "@fenced/x:",
    "@fenced/x:Leaf ",
    " @fenced/x:Leaf",
    "@fenced/x\n:Leaf",
    "@fenced/x:Leaf.prototype",
    "@fenced/x:Le af",
  ])("is not imported: %j", async (provider) => {
    const importModule = vi.fn<ImportModule>(async () => exports);
    const loading = loadComponent(leaf({ provider }), {
      importModule,
      allow: ["another", "*", "@fenced/*", "@fenced/x/"],
    });
    await expect(loading).rejects.toSatisfy(ComponentError.isInstance);
    expect(importModule).not.toHaveBeenCalled();
  });

  test("is not imported for a nested component", async () => {
    const importModule = vi.fn<ImportModule>(async () => exports);
    const loading = loadComponent(tree(leaf({ provider: "evil:Leaf" })), { importModule });
    await expect(loading).rejects.toThrow('At leaves[0] of @fenced/x:Tree: The provider "evil:Leaf" is outside');
    expect(importModule.mock.calls).toEqual([["@fenced/x"]]);
  });

  test("does not run its code", async () => {
    const evil = `data:text/javascript,${encodeURIComponent("globalThis.evilWasHere = true; export class Leaf {}")}`;
    await expect(loadComponent(leaf({ provider: `${evil}:Leaf` }))).rejects.toThrow("not allowed");
    expect(globalThis).not.toHaveProperty("evilWasHere");
  });

  test("is reported with how to allow it", async () => {
    const { message } = await loadError(leaf({ provider: "@mine/leaves:Leaf" }));
    expect(message).toContain('{ allow: ["@mine/leaves"] }');
  });

  test("is not covered by a prefix in allow", async () => {
    await expect(load(leaf({ provider: "mine/sub:Leaf" }), ["mine"])).rejects.toThrow("not allowed");
    await expect(load(leaf({ provider: "mine-too:Leaf" }), ["mine"])).rejects.toThrow("not allowed");
    await expect(load(leaf({ provider: "mine/sub:Leaf" }), ["mine/sub"])).resolves.toBeInstanceOf(Leaf);
  });

  test("cannot be allowed if it is a relative path", async () => {
    await expect(load(leaf({ provider: "./leaves.js:Leaf" }), ["./leaves.js"])).rejects.toThrow("relative path");
  });
});

describe("options in JavaScript", () => {
  test.each([
    [{ alow: ["x"] }, 'loadComponent: unknown option "alow". Did you mean "allow"?'],
    [{ allow: "my-leaves" }, '"allow" is a string. It must be an array.'],
    [{ allow: [5] }, '"allow[0]" is 5. It must be a string.'],
    [{ importModule: "x" }, '"importModule" is not valid. It must be a function.'],
    [null, "loadComponent: the options are null."],
  ])("are rejected before anything is imported: %j", async (options, message) => {
    const attempt = async (): Promise<unknown> => Reflect.apply(loadComponent, undefined, [leaf(), options]);
    await expect(attempt()).rejects.toThrow(InvalidInputError);
    await expect(attempt()).rejects.toThrow(message);
  });
});

describe("an invalid model", () => {
  test.each<[string, unknown, string]>([
    ["not an object", null, "not a component"],
    ["an array", [], "not a component"],
    ["no provider", { ...leaf(), provider: undefined }, "provider: "],
    ["a provider that is not a string", { ...leaf(), provider: 1 }, "provider: "],
    ["no version", { ...leaf(), version: undefined }, "version: "],
    ["a version of zero", { ...leaf(), version: 0 }, "version: "],
    ["a config that is not an object", { ...leaf(), config: "a" }, "config: "],
    ["a config that is not JSON", { ...leaf(), config: { a: { b: () => 1 } } }, "config.a"],
    ["an unknown key", { ...leaf(), extra: 1 }, '"extra"'],
  ])("is rejected: %s", async (_what, model, expected) => {
    expect((await loadError(model as ComponentModel)).message).toContain(expected);
  });

  test.each([
    ["Missing", "does not exist"],
    ["text", "not a component"],
    ["notAClass", "not a component"],
    ["NoFromConfig", "not a component"],
    ["toString", "does not exist"],
    ["constructor", "does not exist"],
    ["__proto__", "does not exist"],
  ])("is rejected for the export %s", async (name, expected) => {
    const { message } = await loadError(leaf({ provider: `@fenced/x:${name}` }));
    expect(message).toContain(`@fenced/x:${name}`);
    expect(message).toContain(expected);
  });

  test("is rejected if its module is not an object", async () => {
    const loading = loadComponent(leaf(), { importModule: async () => undefined });
    await expect(loading).rejects.toThrow("does not exist");
  });

  test("is rejected if its type is not the one its class declares", async () => {
    const { message } = await loadError(leaf({ componentType: "tree" }));
    expect(message).toContain('@fenced/x:Leaf supports componentType "leaf", but the component says "tree"');
  });

  test("is rejected if its version is not the one its class declares", async () => {
    expect((await loadError(leaf({ version: 1 }))).message).toContain("supports version 2, but the component says 1");
  });
});

describe("a config that cannot be loaded", () => {
  test("is reported with the path by parseComponentConfig", async () => {
    expect((await loadError(leaf({ config: { name: 1 } }))).message).toContain("@fenced/x:Leaf is not valid: name: ");
  });

  test("is reported with the path by a schema of the class itself", async () => {
    const error = await loadError({ ...tree(), config: { leaves: "none" } });
    expect(error.message).toContain("@fenced/x:Tree is not valid: leaves: ");
    expect(error.cause).toBeInstanceOf(z.ZodError);
  });

  test("is reported with the path to a nested component", async () => {
    const { message, remedy } = await loadError(tree(leaf(), leaf({ config: {} })));
    expect(message).toContain("At leaves[1] of @fenced/x:Tree: The config of @fenced/x:Leaf is not valid: name: ");
    expect(message.endsWith(remedy)).toBe(true);
    expect(message.split(remedy)).toHaveLength(2);
  });

  test("is reported with the error of the constructor", async () => {
    const error = await loadError(leaf({ config: { name: "" } }));
    expect(error.message).toContain("@fenced/x:Leaf is not valid: The name is empty");
    expect(error.cause).toSatisfy(InvalidInputError.isInstance);
  });

  test("is reported with the reason of any other failure", async () => {
    const model = leaf({ provider: "@fenced/x:Failing" });
    expect((await loadError(model)).message).toContain("something is undefined");
    expect((await loadError({ ...model, config: { how: "string" } })).message).toContain("just words");
  });

  test("keeps an error of another kind, such as a ModelClientError", async () => {
    const model = leaf({ provider: "@fenced/x:Failing", config: { how: "model" } });
    await expect(load(model)).rejects.toSatisfy(ModelClientError.isInstance);
  });
});
