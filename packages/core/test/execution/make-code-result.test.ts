import { inspect } from "node:util";
import {
  compactCodeResult,
  expandCodeResult,
  makeBlockResult,
  makeCodeResult,
  type CodeResult,
  type CompactCodeResult,
} from "@fenced/core";
import { describe, expect, it } from "vitest";

const ended = { exitCode: 0, durationMs: 1, timedOut: false, truncated: false };
const mixed = makeBlockResult({ ...ended, output: "out1 err1 out2", layout: { parts: [5, -5, 4] } });
const cut = makeBlockResult({
  ...ended,
  truncated: true,
  output: "ab\n[... 9 bytes of output left out ...]\nyz",
  layout: { parts: [1, -1, 2], cut: { after: 2, stdout: 4, stderr: 5 } },
});
const plain = makeBlockResult({ ...ended, output: "plain" });

const result = (): CodeResult =>
  makeCodeResult({ ...ended, displays: [], stateLost: false, blocks: [mixed, cut, plain] });

describe("makeBlockResult", () => {
  it("splits the output into stdout and stderr", () => {
    expect([mixed.stdout, mixed.stderr]).toEqual(["out1 out2", "err1 "]);
    expect([plain.stdout, plain.stderr]).toEqual(["plain", ""]);
  });

  it("counts the omitted bytes of each stream separately", () => {
    expect(cut.stdout).toBe("a\n[... 4 bytes of output left out ...]\nyz");
    expect(cut.stderr).toBe("b\n[... 5 bytes of output left out ...]\n");
  });
});

describe("makeCodeResult", () => {
  it("joins the texts of its blocks", () => {
    const { output, stdout, stderr } = result();
    expect(output).toBe(mixed.output + cut.output + plain.output);
    expect(stdout).toBe(mixed.stdout + cut.stdout + plain.stdout);
    expect(stderr).toBe(mixed.stderr + cut.stderr);
  });

  it("is a plain object with all texts when it is spread, cloned or inspected", () => {
    for (const copy of [{ ...result() }, structuredClone(result())]) {
      expect(Object.getOwnPropertyDescriptor(copy, "stdout")).toMatchObject({ value: result().stdout });
      expect(copy).toEqual(result());
    }
    expect(inspect(result())).toContain("output: 'out1 err1 out2");
    expect(inspect(result(), { depth: 5 })).not.toContain("[Getter]");
  });

  it("stores each character of output once in its JSON, and is restored from it", () => {
    const large = makeBlockResult({ ...ended, output: "x".repeat(100_000) });
    const json = JSON.stringify(makeCodeResult({ ...ended, displays: [], stateLost: false, blocks: [large, large] }));
    expect(json.length).toBeLessThan(200_500);
    const written = JSON.stringify(result());
    const parsed = JSON.parse(written) as CompactCodeResult;
    expect(parsed.output).toBe(result().output);
    const again = expandCodeResult(parsed);
    expect(again).toEqual(result());
    expect(again.blocks[1]?.stderr).toBe(cut.stderr);
    expect(JSON.stringify(again)).toBe(JSON.stringify(result()));
  });

  it("keeps a result unchanged if it was made or changed by hand", () => {
    const changed = { ...result(), output: "shorter" };
    expect(expandCodeResult(compactCodeResult(changed))).toEqual(changed);
    const blocks = [{ ...ended, output: "a b", stdout: "a ", stderr: "b" }];
    const own = { ...ended, output: "a b", stdout: "a ", stderr: "b", displays: [], stateLost: false, blocks };
    expect(expandCodeResult(compactCodeResult(own))).toEqual(own);
  });
});
