import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openExecutor } from "../src/open-executor.ts";

describe("openExecutor", () => {
  it("gives a running executor, and ends it", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    onTestFinished(() => warning.mockRestore());
    const open = await openExecutor("local", { output: "plots" });
    const result = await open.executor.executeCodeBlocks([{ language: "javascript", code: "console.log(6 * 7)" }]);
    expect(result.output).toBe("42\n");
    expect(open.executor.capabilities.languages).toContain("javascript");
    await open[Symbol.asyncDispose]();
    await open[Symbol.asyncDispose]();
  });
});
