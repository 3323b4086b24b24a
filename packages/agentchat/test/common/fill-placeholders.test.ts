import { expect, test } from "vitest";
import { fillPlaceholders } from "../../src/common/fill-placeholders.ts";

test.each([
  ["{a} and {b}", "1 and {a} $&"],
  ["{c}, {constructor}, {__proto__}, {}", "{c}, {constructor}, {__proto__}, {}"],
])("%s becomes %s", (text, filled) => {
  expect(fillPlaceholders(text, { a: "1", b: "{a} $&" })).toBe(filled);
});
