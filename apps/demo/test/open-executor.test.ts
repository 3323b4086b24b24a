import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openExecutor } from "../src/open-executor.ts";

describe("openExecutor", () => {
  it("returns a running executor that can be disposed of twice", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    onTestFinished(() => warning.mockRestore());
    const open = await openExecutor("local", { output: "plots" }, new AbortController().signal);
    const result = await open.executor.executeCodeBlocks([{ language: "javascript", code: "console.log(6 * 7)" }]);
    expect(result.output).toBe("42\n");
    expect(open.executor.capabilities.languages).toContain("javascript");
    await open[Symbol.asyncDispose]();
    await open[Symbol.asyncDispose]();
  });

  it("stops a start that is aborted", needs("jupyter"), async () => {
    const controller = new AbortController();
    const opening = openExecutor("jupyter", { output: "plots" }, controller.signal);
    setTimeout(() => controller.abort(new Error("enough")), 100);
    await expect(opening).rejects.toThrow("enough");
  });
});
