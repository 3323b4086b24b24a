import { describe, expect, it } from "vitest";
import { JsonLimitError, measureJson, parseJson } from "../src/index.ts";

describe("JSON from elsewhere", () => {
  it.each([
    ["a scalar", "1"],
    ["white space around everything", ' \n[ 1 , { "a" : [ ] , "b" : { } } ]\t'],
    [
      "long strings with escaped quotes",
      JSON.stringify(['"', `${"a".repeat(40)}"${"b".repeat(40)}\\`, "\\".repeat(41), ",".repeat(20)]),
    ],
    ["brackets, commas and quotes in strings", '{"a,[{": "],}\\"[[[", "b\\\\": "\\\\\\""}'],
  ])("is parsed as JSON.parse does: %s", (_, text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
    expect(parseJson(new TextEncoder().encode(text))).toEqual(JSON.parse(text));
  });

  it("is refused when it is not JSON", () => {
    for (const text of ["", "[1,", '"', '{"a":"\\', "]]]]", "NaN"]) expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  it("is refused before it is parsed if it has more values than allowed", () => {
    expect(parseJson("[1,2]", { maxValues: 4 })).toEqual([1, 2]);
    expect(() => parseJson("[1,2,3,4]", { maxValues: 4 })).toThrow(JsonLimitError);
    expect(() => parseJson(`[${"{},".repeat(1_000_000)}{}]`)).toThrow("more than 1000000 values");
    expect(() => parseJson(`{"a":[${"[],".repeat(1_000_000)}[]]}`)).toThrow("more than 1000000 values");
    // Not JSON at its end, which JSON.parse would notice only after it has created everything before.
    expect(() => parseJson(`[${"0,".repeat(2_000_000)}`)).toThrow(JsonLimitError);
  });

  it("is refused before it is parsed if it has more different names than allowed", () => {
    const names = (make: (number: number) => string): string =>
      `{${Array.from({ length: 20_000 }, (_, number) => `${JSON.stringify(make(number))}:1`).join(",")}}`;
    const kinds = [String, (number: number) => `"\\${number}`, (number: number) => "x".repeat(100) + number];
    for (const make of kinds) {
      expect(() => parseJson(names(make), { maxNames: 19_000 })).toThrow("more than 19000 different names");
      expect(parseJson(names(make), { maxNames: 20_000 })).toEqual(JSON.parse(names(make)));
    }
    expect(parseJson(`[${'{"a":1,"b":"c:d"},'.repeat(10_000)}0]`, { maxNames: 2 })).toHaveLength(10_001);
  });

  it("does not count what strings contain", () => {
    const text = JSON.stringify([",".repeat(2_000_000), '\\"[{,'.repeat(500_000)]);
    expect(parseJson(text)).toHaveLength(2);
    expect(measureJson(text)).toBeLessThan(5);
  });

  it("is refused if it is nested too deep", () => {
    expect(() => parseJson("[".repeat(501))).toThrow("nested more than 500 levels deep");
    expect(parseJson("[[[]]]", { maxDepth: 3 })).toEqual([[[]]]);
    expect(() => parseJson('[[{"a":[]}]]', { maxDepth: 3 })).toThrow(JsonLimitError);
  });
});
