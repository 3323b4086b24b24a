import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { toJson } from "../../src/common/json.ts";

describe("toJson", () => {
  it("copies plain data and leaves undefined out", () => {
    const value = { a: [1, null, { b: "c" }], gone: undefined };
    const copy = toJson(value);
    expect(copy).toEqual({ a: [1, null, { b: "c" }] });
    expect(copy).not.toHaveProperty("gone");
  });

  it("keeps a key named __proto__ as data", () => {
    const withOddKey: unknown = Object.fromEntries([["__proto__", { admin: true }]]);
    const copy = toJson(withOddKey);
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true}}');
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
  });

  it.each([[() => 1], [new Uint8Array(1)], [Number.NaN], [new Date()], [1n]])("rejects %s", (value) => {
    expect(() => toJson({ value })).toThrow(InvalidInputError);
  });
});
