import { describe, expect, it, onTestFinished, vi } from "vitest";
import { hostFunction, hostFunctionsFrom, InvalidInputError } from "../../../src/index.ts";

const made = (input: object) => hostFunction({ name: "made", description: "", input: { ...input }, execute: () => 1 });
const check = (input: object, value: unknown) => made(input).checkInput(value);
const refused = { problem: expect.any(String) };

describe("a JSON schema of a host function", () => {
  it.each<[string, object, object, object]>([
    [
      "without a type at its root",
      { properties: { path: { type: "string", pattern: "^/tmp/" } } },
      { path: "/tmp/a" },
      { path: "/etc/shadow" },
    ],
    ["with required fields that it does not describe", { type: "object", required: ["a"] }, { a: 1 }, {}],
    [
      "with allOf beside properties",
      { type: "object", properties: {}, allOf: [{ required: ["a"] }] },
      { a: 1 },
      { b: 1 },
    ],
    [
      "with anyOf without types",
      { type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      { b: 1 },
      { c: 1 },
    ],
    ["with limits but no type", { type: "object", properties: { n: { minimum: 1, maximum: 5 } } }, { n: 5 }, { n: 6 }],
    [
      "with keywords beside $ref",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        type: "object",
        properties: { n: { $ref: "#/definitions/n", maximum: 5 } },
        definitions: { n: { type: "number" } },
      },
      { n: 5 },
      { n: 6 },
    ],
    ["with a condition", { type: "object", if: { required: ["a"] }, else: { required: ["b"] } }, { a: 1 }, { c: 1 }],
    ["of draft 4", { type: "object", properties: { n: { minimum: 1, exclusiveMinimum: true } } }, { n: 2 }, { n: 1 }],
    ["with propertyNames", { type: "object", propertyNames: { pattern: "^[a-z]+$" } }, { a: 1 }, { "../a": 1 }],
  ])("is checked: one %s", async (_, schema, good, bad) => {
    expect(await check(schema, good)).toEqual({ value: good });
    expect(await check(schema, bad)).toEqual(refused);
  });

  it("accepts only objects, whatever it says", async () => {
    for (const value of [1, "a", null, [1], true]) {
      expect(await check({}, value)).toEqual({ problem: "must be an object" });
    }
  });

  it.each<[string, object]>([
    ["#/properties/a/pattern", { type: "object", properties: { a: { pattern: "(" } } }],
    ["#/properties/a/type", { type: "object", properties: { a: { type: "file" } } }],
    ["#/required", { type: "object", required: true }],
    ["#/properties", { type: "object", properties: [] }],
    ["#/allOf", { type: "object", allOf: {} }],
    ["#/patternProperties/(", { type: "object", patternProperties: { "(": {} } }],
    ["#/$schema", { $schema: "https://example.com/mine", type: "object" }],
    ["#/properties/a/$dynamicRef", { type: "object", properties: { a: { $dynamicRef: "#a" } } }],
    ["#/$defs/nothing", { type: "object", properties: { a: { $ref: "#/$defs/nothing" } } }],
    ["https://example.com/other", { type: "object", properties: { a: { $ref: "https://example.com/other" } } }],
  ])("is refused by the name of what cannot be checked: %s", async (place, schema) => {
    expect(() => made(schema)).toThrow(InvalidInputError);
    expect(() => made(schema)).toThrow(place);
    // Of a tool, which checks its arguments itself, everything else is checked.
    const tool = { inputSchema: { jsonSchema: { ...schema, maxProperties: 1 } }, execute: () => 1 };
    const [lenient] = hostFunctionsFrom({ tool });
    expect(await lenient?.checkInput({ a: "(" })).toEqual({ value: { a: "(" } });
    expect(await lenient?.checkInput({ a: 1, b: 2 })).toEqual(refused);
  });

  it("cannot stop this program with a pattern or a list that takes for ever to check", async () => {
    const slow = "checking it against the schema takes too long";
    const pattern = made({ type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } });
    for (const length of [41, 60, 80]) {
      expect(await pattern.checkInput({ a: `${"a".repeat(length)}!` })).toEqual({ problem: slow });
    }
    expect(await pattern.checkInput({ a: "aaa" })).toEqual({ value: { a: "aaa" } });
    const list = made({ type: "object", properties: { a: { uniqueItems: true } } });
    const numbers = Array.from({ length: 90_000 }, (_, index) => index);
    expect(await list.checkInput({ a: numbers })).toEqual({ problem: slow });
    expect(await list.checkInput({ a: [1, 1] })).toEqual({ problem: expect.stringContaining("Duplicate") });
  });

  it("checks large arguments again soon after somebody's calls took too long", async () => {
    const item = { type: "object", properties: { x: { type: "integer", minimum: 0 } }, required: ["x"] };
    const properties = { a: { type: "string", pattern: "^(a+)+$" }, b: { type: "array", items: item } };
    const shared = made({ type: "object", properties });
    const slow = { problem: "checking it against the schema takes too long" };
    for (let call = 0; call < 8; call += 1) {
      expect(await shared.checkInput({ a: `${"a".repeat(60)}!` })).toEqual(slow);
    }
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 10_000);
    onTestFinished(() => clock.mockRestore());
    const large = { b: Array.from({ length: 12_000 }, () => ({ x: 1 })) };
    expect(await shared.checkInput(large)).toEqual({ value: large });
  });

  it("that refers to itself without end fails the call, not the program", async () => {
    expect(await check({ type: "object", $ref: "#" }, {})).toEqual(refused);
    const list = { type: "object", properties: { next: { $ref: "#" } }, additionalProperties: false };
    expect(await check(list, { next: { next: {} } })).toEqual({ value: { next: { next: {} } } });
    expect(await check(list, { next: { nest: {} } })).toEqual({ problem: expect.stringContaining('"next') });
  });

  it("describes the first problems of many, and counts the others", async () => {
    const schema = { type: "object", required: Array.from({ length: 5000 }, (_, index) => `f${index}`) };
    expect(await check(schema, {})).toEqual({ problem: expect.stringMatching(/f0"[^]*; and 4980 more$/) });
  });
});
