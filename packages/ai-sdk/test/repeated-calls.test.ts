import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { codeExecutionTool } from "../src/index.ts";

const executor = new LocalCommandLineCodeExecutor();
afterAll(() => executor.stop());

/** Calls the tool as the AI SDK does, and returns what the code printed. */
async function outputOf(toolCallId: string, code: string): Promise<string> {
  const { execute } = codeExecutionTool(executor);
  const outputs = await execute?.({ language: "bash", code }, { toolCallId, messages: [] });
  if (outputs === undefined || !(Symbol.asyncIterator in outputs)) throw new Error("the tool streams no output");
  let text = "";
  for await (const output of outputs) text = output.output;
  return text;
}

const counting = 'echo x >> runs; wc -l < runs | tr -d " "';

describe("a tool call that is repeated", needs("bash"), () => {
  it("is the same run if its id identifies it", async () => {
    for (const id of ["call_8fKq2LzPx0aB3dE5gH7jK9mN", "b3b8a0a4-4f0f-4f7e-9f3d-0b1c2d3e4f5a"]) {
      const first = await outputOf(id, counting);
      expect(await outputOf(id, counting)).toBe(first);
      expect(await outputOf(id, "echo other code")).toBe("other code\n");
    }
  });

  it("runs again if providers count their calls", async () => {
    for (const id of ["call_0", "functions.execute_code:0", "1", "toolcallnumberone"]) {
      const first = Number(await outputOf(id, counting));
      expect(Number(await outputOf(id, counting))).toBe(first + 1);
    }
  });
});
