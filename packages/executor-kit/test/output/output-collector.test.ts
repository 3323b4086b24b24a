import { makeBlockResult } from "@fenced/core";
import { OutputCollector } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

const collect = (maxBytes: number, pieces: readonly (readonly ["stdout" | "stderr", string | Uint8Array])[]) => {
  const collector = new OutputCollector(maxBytes);
  const seen = { stdout: "", stderr: "" };
  for (const [name, data] of pieces) for (const piece of collector.push(name, data)) seen[name] += piece.toString();
  for (const name of ["stdout", "stderr"] as const) {
    for (const piece of collector.end(name)) seen[name] += piece.toString();
  }
  const { output, layout, truncated, keptBytes } = collector.text();
  const fields = { exitCode: 0, output, durationMs: 0, timedOut: false, truncated };
  const { stdout, stderr } = makeBlockResult({ ...fields, ...(layout ? { layout } : {}) });
  return { seen, output, stdout, stderr, truncated, keptBytes };
};

describe("OutputCollector", () => {
  it("separates both streams, and combines them in order of arrival", () => {
    const { output, stdout, stderr, truncated } = collect(100, [
      ["stdout", "a1 "],
      ["stderr", "b1 "],
      ["stdout", "a2 "],
      ["stdout", "a3 "],
      ["stderr", "b2"],
    ]);
    expect({ output, stdout, stderr, truncated }).toEqual({
      output: "a1 b1 a2 a3 b2",
      stdout: "a1 a2 a3 ",
      stderr: "b1 b2",
      truncated: false,
    });
  });

  it("is not truncated at exactly the limit", () => {
    const { output, truncated } = collect(10, [["stdout", "0123456789"]]);
    expect({ output, truncated }).toEqual({ output: "0123456789", truncated: false });
  });

  it("keeps the head and the tail, and names the size of the cut", () => {
    const { output, stdout, truncated } = collect(10, [["stdout", "0123456789A"]]);
    expect(truncated).toBe(true);
    expect(output).toBe("01234\n[... 1 bytes of output left out ...]\n6789A");
    expect(stdout).toBe(output);
  });

  it("cuts the combined output, even if neither stream alone is too long", () => {
    const { output, stdout, stderr, truncated } = collect(8, [
      ["stdout", "aaa"],
      ["stderr", "bbb"],
      ["stdout", "ccc"],
      ["stderr", "ddd"],
    ]);
    expect(output).toBe("aaab\n[... 4 bytes of output left out ...]\ncddd");
    expect({ stdout, stderr, truncated }).toEqual({
      stdout: "aaa\n[... 2 bytes of output left out ...]\nc",
      stderr: "b\n[... 2 bytes of output left out ...]\nddd",
      truncated: true,
    });
  });

  it("keeps the right tail however the output is split into pieces", () => {
    const text = Array.from({ length: 5000 }, (_, index) => `${index},`).join("");
    const expected = `${text.slice(0, 50)}\n[... ${text.length - 100} bytes of output left out ...]\n${text.slice(-50)}`;
    for (const size of [1, 2, 3, 7, 49, 50, 51, 99, 100, 101, 4096, text.length]) {
      const pieces = [];
      for (let at = 0; at < text.length; at += size) pieces.push(["stdout", text.slice(at, at + size)] as const);
      expect(collect(100, pieces).output, `pieces of ${size}`).toBe(expected);
    }
  });

  it("joins characters that are split between pieces, in the events, too", () => {
    const bytes = Buffer.from("aé€😀z");
    for (let size = 1; size <= bytes.length; size += 1) {
      const pieces = [];
      for (let at = 0; at < bytes.length; at += size) pieces.push(["stdout", bytes.subarray(at, at + size)] as const);
      const { output, seen } = collect(100, pieces);
      expect(output).toBe("aé€😀z");
      expect(seen.stdout).toBe("aé€😀z");
    }
  });

  it("keeps a character whole when the other stream writes in the middle of it", () => {
    const euro = Buffer.from("€");
    const { output } = collect(100, [
      ["stdout", euro.subarray(0, 1)],
      ["stderr", "!"],
      ["stdout", euro.subarray(1)],
    ]);
    expect(output).toBe("!€");
  });

  it("replaces invalid and unfinished bytes", () => {
    const { output, seen } = collect(100, [
      ["stdout", Uint8Array.of(0x61, 0xff, 0xfe, 0x62)],
      ["stdout", Uint8Array.of(0xe2, 0x82)],
    ]);
    expect(output).toBe("a\u{fffd}\u{fffd}b\u{fffd}");
    expect(seen.stdout).toBe(output);
  });

  it("leaves out characters that the cut goes through", () => {
    const { output } = collect(8, [["stdout", "€€€€€€"]]);
    expect(output).toBe("€\n[... 12 bytes of output left out ...]\n€");
  });

  it("keeps nothing at a limit of 0, and says so", () => {
    expect(collect(0, [["stdout", "abc"]]).output).toBe("\n[... 3 bytes of output left out ...]\n");
  });

  it("copies its input, whose memory may be reused", () => {
    const collector = new OutputCollector(100);
    const piece = Buffer.from("before");
    collector.push("stdout", piece);
    piece.fill("x");
    expect(collector.text().output).toBe("before");
  });

  it("separates the streams wherever the cut and the boundaries of characters are", () => {
    const words = ["a", "€", "😀", "bc", "\u{fffd}", "éü"];
    for (let limit = 0; limit < 60; limit += 1) {
      const pieces = Array.from({ length: 20 }, (_, index) => {
        const name = index % 3 === 0 ? ("stderr" as const) : ("stdout" as const);
        return [name, words[index % words.length] ?? ""] as const;
      });
      const { output, stdout, stderr, keptBytes } = collect(limit, pieces);
      const line = /\n\[\.\.\. (\d+) bytes of output left out \.\.\.\]\n/;
      const all = pieces.map(([, text]) => text).join("");
      const [head = "", tail = ""] = output.split(/\n\[.*\]\n/);
      expect(all.startsWith(head) && all.endsWith(tail)).toBe(true);
      expect(keptBytes).toBeLessThanOrEqual(limit);
      const cut = (text: string): number => Number(line.exec(text)?.[1] ?? 0);
      expect(cut(stdout) + cut(stderr)).toBe(cut(output));
      const bare = (text: string): number => Buffer.byteLength(text.replace(line, ""));
      expect(bare(stdout) + bare(stderr)).toBe(bare(output));
      expect(bare(output) + cut(output)).toBe(Buffer.byteLength(all));
      for (const [name, text] of [
        ["stdout", stdout],
        ["stderr", stderr],
      ] as const) {
        const own = pieces.map(([from, piece]) => (from === name ? piece : "")).join("");
        const [first = "", last = ""] = text.split(/\n\[.*\]\n/);
        expect(own.startsWith(first) && own.endsWith(last), `${name} at ${limit}: ${text}`).toBe(true);
      }
    }
  });
});
