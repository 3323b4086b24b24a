import { describe, expect, it } from "vitest";
import { TerminalTail, terminalLines } from "../../src/text/terminal-lines.ts";

const escape = "\u001B";
const csi = `${escape}[`;

describe("terminalLines", () => {
  it.each([
    ["plain text", "a\tb \n\n c\n", "a\tb \n\n c\n"],
    ["Windows line breaks", "a\r\nb \r\n", "a\nb \n"],
    [
      "the last state of a progress bar",
      "start\n\r10% |#\r100% |##########\nready\n",
      "start\n100% |##########\nready\n",
    ],
    ["what a shorter state leaves of a longer one", "\rlonger\rab\n", "abnger\n"],
    ["no blanks that erase an earlier state", "\r100%|####\r          \rdone\n", "done\n"],
    ["backspaces", "abc\b\bX\n", "aXc\n"],
    ["spinners", "- \b\b\\ \b\b| ready\n", "| ready\n"],
    ["colours", `${csi}1m${csi}31mred${csi}0m and ${csi}38;5;208morange${csi}m\n`, "red and orange\n"],
    ["an erased line", `old text${csi}2K${csi}1Gnew\n`, "new\n"],
    ["a line erased to its end", `old text\r${csi}Knew\n`, "new\n"],
    ["a line erased from its beginning", `old text${csi}3D${csi}1KX\n`, "     Xxt\n"],
    ["bars on several lines", `a 1%\nb 1%\n${csi}2Aa 9%\nb 9%\n`, "a 9%\nb 9%\n"],
    ["lines that are erased upwards", `a\nb\nc\n${csi}1A${csi}2K${csi}1A${csi}2Kdone\n`, "a\ndone\n"],
    ["a screen that is cleared", `one\ntwo\n${csi}2J${csi}Hthree\n`, "three\n"],
    ["frames of a screen", `${csi}H${csi}2Jframe 1\n${csi}H${csi}2Jframe 2\n`, "frame 2\n"],
    ["columns", `a${csi}10Gb${csi}5Cc\n`, "a        b     c\n"],
    [
      "titles and links",
      `${escape}]0;a title\u0007${escape}]8;;https://x.test\u0007link${escape}]8;;${escape}\\\n`,
      "link\n",
    ],
    ["pictures for terminals", `${escape}Pq#0;2;0;0;0#0~~@@vv\n~~${escape}\\end\n`, "end\n"],
    ["bells, nulls and a lone escape", "a\u0007b\u0000c\u001B", "abc"],
    ["characters outside the basic plane", "\r😀 one\r😀 two\n", "😀 two\n"],
  ])("shows %s", (_, text, expected) => {
    expect(terminalLines(text)).toBe(expected);
  });

  it("keeps lines that have left the screen", () => {
    const lines = Array.from({ length: 100 }, (_, index) => `line ${index}\n`).join("");
    expect(terminalLines(`${lines}${csi}2J${csi}Hend\n`)).toBe(`${lines.split("\n").slice(0, 77).join("\n")}\nend\n`);
  });

  it("needs time and memory for the length of the text alone", () => {
    const far = `${csi}999999999C${csi}999999999B`;
    const long = "x".repeat(500_000);
    for (const text of [`${far}x\n`.repeat(20_000), long + "a\b".repeat(300_000), long + `${csi}1K`.repeat(200_000)]) {
      expect(terminalLines(text).length).toBeLessThan(text.length + 200_000);
    }
    expect(terminalLines(`${escape}]`.repeat(200_000))).toHaveLength(200_000);
  });
});

describe("TerminalTail", () => {
  const text = `one\n\r${csi}32m10%${csi}0m\r${csi}2K100%${escape}]8;;https://x.test${escape}\\link\n${csi}1Atwo\r\nthree`;

  it("shows the same wherever the text is split", () => {
    const shown = terminalLines(text);
    for (let index = 0; index <= text.length; index += 1) {
      const tail = new TerminalTail(100);
      for (const part of [text.slice(0, index), text.slice(index)]) tail.write(part);
      expect([index, String(tail)]).toEqual([index, shown]);
    }
    const letters = new TerminalTail(100);
    for (const letter of text) letters.write(letter);
    expect(String(letters)).toBe(shown);
  });

  it("keeps the end of what was shown", () => {
    const tail = new TerminalTail(12);
    for (let index = 0; index < 1000; index += 1) tail.write(`line ${index}\n`);
    expect(String(tail)).toBe("…98\nline 999\n");
    for (let index = 0; index < 1000; index += 1) tail.write(`\r${index}%`);
    expect(String(tail)).toBe("…ine 999\n999%");
    tail.write("x".repeat(100_000));
    expect(String(tail)).toBe(`…${"x".repeat(12)}`);
  });

  it("shows only what is new after it was taken", () => {
    const tail = new TerminalTail(100);
    tail.write(`one\n\r1%${csi}3`);
    expect(tail.take()).toBe("one\n1%");
    tail.write("1m\r2%");
    expect(tail.take()).toBe("2%");
    expect(tail.take()).toBe("");
  });

  it("does not grow with the text", () => {
    const tail = new TerminalTail(1000);
    for (let index = 0; index < 20_000; index += 1) tail.write(`${"x".repeat(1000)}${index % 3 === 0 ? "\n" : ""}`);
    tail.write(`${escape}]${"y".repeat(2000)}`);
    expect(String(tail)).toHaveLength(1001);
  });
});
