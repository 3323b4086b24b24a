import { describe, expect, it } from "vitest";
import { codeResultForModel } from "../../src/index.ts";
import { codeResult } from "../support/code-result.ts";

const png = (size: number) => ({ data: { "image/png": new Uint8Array(size) }, files: [] });

describe("codeResultForModel", () => {
  it("returns a short result unchanged", () => {
    const result = codeResult({ output: "42\n" });
    expect(codeResultForModel(result, 1)).toEqual({ text: "42\n", output: "42\n", truncated: false, images: [] });
  });

  it("keeps the head and tail of long output, and says that it was cut", () => {
    const output = `head ${"x".repeat(100)} tail`;
    const forModel = codeResultForModel(codeResult({ exitCode: 3, output }), 1, { maxOutputCharacters: 10 });
    expect(forModel.output).toBe("head \n[... 100 characters left out ...]\n tail");
    expect(forModel.truncated).toBe(true);
    expect(forModel.text).toBe(
      `The code failed with exit code 3. Its output:\n${forModel.output}\n\n` +
        "The output was longer than the limit: its middle is left out.",
    );
  });

  it("keeps only what a terminal would show at the end", () => {
    const frames = Array.from(
      { length: 1001 },
      (_, index) => `\r${index / 10}% \u001B[32m${"#".repeat(index / 20)}\u001B[0m`,
    );
    const forModel = codeResultForModel(codeResult({ output: `${frames.join("")}\nready\n` }), 1);
    expect(forModel).toMatchObject({ output: `100% ${"#".repeat(50)}\nready\n`, truncated: false });
    expect(forModel.text).toBe(forModel.output);
  });

  it("does not split characters, and can leave out the whole output", () => {
    const result = codeResult({ output: "a😀😀😀b" });
    expect(codeResultForModel(result, 1, { maxOutputCharacters: 4 }).output).toBe(
      "a\n[... 6 characters left out ...]\nb",
    );
    expect(codeResultForModel(result, 1, { maxOutputCharacters: 0 }).output).toBe(
      "\n[... 8 characters left out ...]\n",
    );
  });

  it("reports that the executor truncated the output", () => {
    expect(codeResultForModel(codeResult({ output: "long\n", truncated: true }), 1).truncated).toBe(true);
  });

  it("returns the last images that are small enough, and counts those left out", () => {
    const result = codeResult({ output: "ok\n", displays: [png(1), png(2), png(3), png(11), png(4)] });
    const { images, text } = codeResultForModel(result, 1, { maxImages: 2, maxImageBytes: 10 });
    expect(images.map(({ bytes }) => bytes.length)).toEqual([3, 4]);
    expect(text).toBe("ok\n\n3 images were created that are not shown here.");
    expect(codeResultForModel(codeResult({ displays: [png(1)] }), 1, { maxImages: 0 })).toMatchObject({
      images: [],
      text: "The code ran and printed nothing (exit code 0).\n\n1 image was created that is not shown here.",
    });
  });
});
