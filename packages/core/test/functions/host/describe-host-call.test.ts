import { expect, test } from "vitest";
import { describeHostCall, describeHostInput } from "../../../src/index.ts";

test("describes a call with invisible characters escaped, and counts omitted characters", () => {
  expect(describeHostCall({ name: "remove", input: { id: 1 } })).toBe('remove({"id":1})');
  expect(describeHostCall({ name: "pay", input: "\u202e\u001b[2Jto me" })).toBe('pay("\\u202e\\u001b[2Jto me")');
  const input = { cmd: "ls \u009b;reboot;\u009c\u200b\u{e0041}" };
  expect(describeHostCall({ name: "run", input })).toBe(
    String.raw`run({"cmd":"ls \u009b;reboot;\u009c\u200b\udb40\udc41"})`,
  );
  expect(JSON.parse(describeHostInput(input))).toEqual(input);
  expect(describeHostInput("😀".repeat(9), 7)).toBe('"😀[... 14 characters left out ...]😀"');
  const long = describeHostCall({ name: "pay", input: `a${"x".repeat(5000)}z` });
  expect(long).toMatch(/^pay\("ax{1998}\[\.\.\. 1004 characters left out \.\.\.\]x{1998}z"\)$/);
});

test.each([
  ["variation selectors", "\ufe00", "\ufe0f", "\u{e0100}"],
  ["joiners", "\u200c", "\u200d", "\u034f"],
  ["tags and other ignorable characters", "\u{e0041}", "\u{e0fff}", "\u{1d173}"],
  ["letters without ink", "\u3164", "\u115f", "\u2800"],
  ["Mongolian selectors", "\u180b", "\u180e", "\u180f"],
])("hides nothing in %s", (_, ...characters) => {
  for (const character of characters) {
    const shown = describeHostCall({ name: "pay", input: { to: `me${character}` } });
    expect(shown).toMatch(/me\\u/);
    expect(shown).not.toContain(character);
  }
});
