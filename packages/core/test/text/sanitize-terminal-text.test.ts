import { describe, expect, it } from "vitest";
import { sanitizeTerminalText } from "../../src/text/sanitize-terminal-text.ts";

describe("sanitizeTerminalText", () => {
  it.each([
    ["colours", "\u001B[31mred\u001B[0m", "red"],
    ["cursor moves and erasure", "a\u001B[2J\u001B[1;1H\u001B[Kb", "ab"],
    ["window titles", "a\u001B]0;owned\u0007b", "ab"],
    ["clipboard writes", "a\u001B]52;c;ZXZpbA==\u0007b", "ab"],
    ["links", "a\u001B]8;;https://example.com/\u001B\\b\u001B]8;;\u0007c", "abc"],
    ["changes of the character set", "\u001B(Ba\u001B7b\u001Bc", "ab"],
    ["C1 controls", "a\u009B31mb", "ab"],
    ["backspaces", "safe\b\b\b\bevil", "safeevil"],
    ["bells and nulls", "a\u0007\u0000b", "ab"],
    ["overrides of the text direction", "a\u202Eb\u2066c", "abc"],
  ])("removes %s", (_, text, expected) => {
    expect(sanitizeTerminalText(text)).toBe(expected);
  });

  it("leaves no control character of unknown sequences", () => {
    for (const text of ["\u001B", "\u001B[", "\u001B]8;;http://x", "\u001BPq", "\u001B_x", "\u001B\u001B[31m"]) {
      // oxlint-disable-next-line no-control-regex
      expect(sanitizeTerminalText(text)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    }
  });

  it("hides no text between control characters", () => {
    const hidden = "\nrm -rf ~ (all)\n";
    for (const [begin, end] of [
      ["\u001B]", "\u0007"],
      ["\u009D", "\u009C"],
      ["\u001BP", "\u001B\\"],
      ["\u001B_", "\u001B\\"],
      ["\u001B^", "\u009C"],
    ]) {
      expect(sanitizeTerminalText(`a${begin}${hidden}${end}b`)).toContain(hidden);
    }
  });

  it("keeps newlines, tabs and text in any language", () => {
    expect(sanitizeTerminalText("a\tb\nc é 漢字 עברית 👩‍💻")).toBe("a\tb\nc é 漢字 עברית 👩‍💻");
  });

  it("turns carriage returns into line breaks", () => {
    expect(sanitizeTerminalText("10%\r20%\r\nend")).toBe("10%\n20%\nend");
  });
});
