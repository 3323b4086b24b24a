import { expect, it } from "vitest";
import { CodeExecutorTool } from "../../src/index.ts";
import { codeResult, ScriptedExecutor } from "../support/scripted-executor.ts";

it("CodeExecutorTool mentions images that text cannot show", async () => {
  const plot = { data: { "image/png": Uint8Array.of(1, 2, 3) }, files: ["/work/plot.png"] };
  const tool = new CodeExecutorTool(new ScriptedExecutor([codeResult({ output: "done\n", displays: [plot, plot] })]));
  expect(await tool.execute({ language: "python", code: "plot()" }, {})).toBe(
    "done\n\nSaved files:\nplot.png\nplot.png\n\n2 images were created that are not shown here.",
  );
});
