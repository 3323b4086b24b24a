import { describe, expect, it } from "vitest";
import { MarkdownPainter } from "../../src/console/markdown-painter.ts";
import type { Paint } from "../../src/console/terminal-colors.ts";

const mark: Paint = (look, text) => (look === undefined || text === "" ? text : `<${text}>`);

function painted(...pieces: readonly string[]): string {
  const painter = new MarkdownPainter(mark);
  return pieces.map((piece) => painter.push(piece)).join("") + painter.end();
}

describe("MarkdownPainter", () => {
  const text = "See `x`:\n\n```python\nprint(1)\n\n# done\n```\nThat was it.\n";

  it("marks fences and the code in them", () => {
    expect(painted(text)).toBe("See `x`:\n\n<```python>\n<print(1)>\n\n<# done>\n<```>\nThat was it.\n");
  });

  it("writes every character once, wherever the text is split", () => {
    for (let cut = 1; cut < text.length; cut++) {
      const shown = painted(text.slice(0, cut), text.slice(cut));
      expect(shown.replaceAll(/[<>]/g, "")).toBe(text);
      expect(shown.split("\n").at(-2)).toBe("That was it.");
    }
    expect(painted(...text.split("")).replaceAll("><", "")).toBe(painted(text));
  });

  it("holds back only characters that may start a fence", () => {
    const painter = new MarkdownPainter(mark);
    expect(painter.push("abc")).toBe("abc");
    expect(painter.push("\n``")).toBe("\n");
    expect(painter.push("`py")).toBe("<```py>");
    expect(painter.end()).toBe("");
  });

  it("closes a fence only with one of the same character and length", () => {
    expect(painted("````\n```\n````\nx")).toBe("<````>\n<```>\n<````>\nx");
    expect(painted("~~~\n```\n~~~\nx")).toBe("<~~~>\n<```>\n<~~~>\nx");
  });
});
