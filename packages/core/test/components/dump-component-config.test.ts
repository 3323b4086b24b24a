import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { ComponentError, dumpComponentConfig, FunctionWithRequirements } from "../../src/index.ts";

const provider = "@fenced/x:X";

function dumpError(settings: Record<string, unknown>, secrets: string[] = []): ComponentError {
  try {
    dumpComponentConfig(provider, settings, { secrets });
  } catch (error) {
    if (ComponentError.isInstance(error)) return error;
    throw error;
  }
  throw new Error("the dump did not throw");
}

describe("what can be dumped", () => {
  test("plain JSON comes back as a copy", () => {
    const settings = {
      text: "a",
      number: 1.5,
      flag: false,
      nothing: null,
      list: [1, [2, { a: "b" }]],
      object: { c: {} },
    };
    const config = dumpComponentConfig(provider, settings);
    expect(config).toEqual(settings);
    expect(config["list"]).not.toBe(settings.list);
    expect(JSON.stringify(config)).toBe(JSON.stringify(settings));
  });

  test("undefined is left out, at any depth", () => {
    const config = dumpComponentConfig(provider, { a: undefined, b: { c: undefined, d: 1 } });
    expect(Object.keys(config)).toEqual(["b"]);
    expect(config).toStrictEqual({ b: { d: 1 } });
  });

  test("an object with toJSON is replaced by what it returns", () => {
    const definition = FunctionWithRequirements.fromString("def f(): pass");
    const config = dumpComponentConfig(provider, {
      date: new Date(0),
      url: new URL("http://localhost/a"),
      functions: [definition],
    });
    expect(config).toEqual({
      date: "1970-01-01T00:00:00.000Z",
      url: "http://localhost/a",
      functions: [definition.toJSON()],
    });
  });

  test("objects without a prototype and of another realm are plain", () => {
    const bare: Record<string, unknown> = Object.assign(Object.create(null), { a: 1 });
    const foreign: unknown = runInNewContext("({ b: [2] })");
    expect(dumpComponentConfig(provider, { bare, foreign })).toEqual({ bare: { a: 1 }, foreign: { b: [2] } });
  });

  test("the same object may occur in several places", () => {
    const shared = { a: 1 };
    expect(dumpComponentConfig(provider, { b: shared, c: [shared, shared] })).toEqual({
      b: { a: 1 },
      c: [{ a: 1 }, { a: 1 }],
    });
  });

  test("a key named __proto__ stays a key", () => {
    const config = dumpComponentConfig(provider, { a: JSON.parse('{ "__proto__": { "b": 1 } }') });
    expect(JSON.stringify(config)).toBe('{"a":{"__proto__":{"b":1}}}');
  });
});

describe("what cannot be dumped", () => {
  class Options {
    readonly a = 1;
  }
  // A class takes the name of the first variable that it is assigned to; taken out of an array, it has none.
  const [nameless] = [
    class {
      readonly a = 1;
    },
  ];
  const orphan = new Options();
  Object.defineProperty(orphan, "constructor", { value: undefined });
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  const withHole: unknown[] = [];
  withHole.length = 1;

  test.each<[string, unknown, string]>([
    ["a function", () => 1, "key is a function"],
    ["a class", Options, "key is a function"],
    ["a symbol", Symbol("s"), "key is a symbol"],
    ["a bigint", 1n, "key is a bigint"],
    ["NaN", Number.NaN, "key is NaN"],
    ["Infinity", Number.POSITIVE_INFINITY, "key is Infinity"],
    ["a class instance", new Options(), "key is an instance of Options"],
    ["a Map", new Map(), "key is an instance of Map"],
    ["a boxed number", new Number(1), "key is an instance of Number"],
    ["an instance of a class without a name", new nameless(), "key is an instance of a class"],
    ["an instance without a constructor", orphan, "key is an instance of a class"],
    ["a Uint8Array", new Uint8Array(1), "key is binary data"],
    ["a Buffer, although it has toJSON", Buffer.from("a"), "key is binary data"],
    ["a DataView", new DataView(new ArrayBuffer(1)), "key is binary data"],
    ["an ArrayBuffer", new ArrayBuffer(1), "key is an instance of ArrayBuffer"],
    ["a promise", Promise.resolve(1), "key is an instance of Promise"],
    ["undefined in a list", [undefined], "key[0] is undefined"],
    ["a hole in a list", withHole, "key[0] is undefined"],
    ["a cycle", cyclic, "key.self contains itself"],
    ["a symbol as a key", { [Symbol("s")]: 1 }, "key has the key Symbol(s)"],
    ["a toJSON that returns a function", { toJSON: () => () => 1 }, "key is a function"],
    ["something deep inside", { a: [{ b: () => 1 }] }, "key.a[0].b is a function"],
  ])("%s", (_what, value, reason) => {
    const error = dumpError({ key: value });
    expect(error.message).toContain(`@fenced/x:X cannot be dumped without loss: ${reason}. `);
    expect(error.message.endsWith(error.remedy)).toBe(true);
  });

  test("each of them is named in one error", () => {
    const { message } = dumpError({ a: () => 1, fine: 1, b: { c: 2n }, token: "t0p" }, ["token"]);
    expect(message).toContain("a is a function; b.c is a bigint; token is a secret");
    expect(message).not.toContain("t0p");
    expect(message).not.toContain("fine");
  });

  test("a symbol as a key of the config itself", () => {
    expect(dumpError(Object.assign({}, { [Symbol("s")]: 1 })).message).toContain("the config has the key Symbol(s)");
  });
});

describe("secrets", () => {
  test.each([["text"], [""], [0], [false], [{ a: 1 }], [(): string => "t"]])("cannot be dumped as %j", (value) => {
    expect(dumpError({ token: value }, ["token"]).message).toContain("token is a secret");
  });

  test("may be listed although they are not set", () => {
    expect(
      dumpComponentConfig(provider, { token: undefined, key: null }, { secrets: ["token", "key", "other"] }),
    ).toEqual({
      key: null,
    });
  });

  test("are found inside another setting", () => {
    const settings = { server: { baseUrl: "http://localhost", token: "t" }, token: "not this one" };
    expect(dumpError(settings, ["server.token"]).message).toContain("without loss: server.token is a secret. ");
  });
});
