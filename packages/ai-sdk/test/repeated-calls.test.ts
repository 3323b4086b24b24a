import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { codeExecutionTool } from "../src/index.ts";

const executor = new LocalCommandLineCodeExecutor();
afterAll(() => executor.stop());

/** Calls the tool as the AI SDK does, and returns what the code printed. */
async function outputOf(toolCallId: string, code: string, abortSignal?: AbortSignal): Promise<string> {
  const { execute } = codeExecutionTool(executor);
  const call = { toolCallId, messages: [], ...(abortSignal && { abortSignal }) };
  const outputs = await execute?.({ language: "bash", code }, call);
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

  it("goes on if only one of those who wait for it is aborted, and runs again if all were", async () => {
    const id = "call_2LzPx0aB3dE5gH7jK9mN8fKq";
    const code = `${counting}; until [ -e go ]; do sleep 0.02; done; echo went on`;
    const leaving = new AbortController();
    const first = outputOf(id, code, leaving.signal);
    const second = outputOf(id, code);
    leaving.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
    await executor.files.write("go", "");
    expect(await second).toMatch(/went on\n$/);
    await executor.files.remove("go");

    const other = "call_3LzPx0aB3dE5gH7jK9mN8fKq";
    const stopping = new AbortController();
    const stopped = outputOf(other, code, stopping.signal);
    await expect
      .poll(() => executor.runs().some(({ state, lastSeq }) => state === "running" && lastSeq > 1))
      .toBe(true);
    stopping.abort(new Error("stop"));
    await expect(stopped).rejects.toThrow("stop");
    await executor.files.write("go", "");
    expect(await outputOf(other, code)).toMatch(/went on\n$/);
  });

  it("is recognised in time that grows with the length of its id alone", async () => {
    const letters = "a".repeat(1_000_000);
    const first = Number(await outputOf(letters, counting));
    expect(Number(await outputOf(letters, counting))).toBe(first + 1);
    const numbered = await outputOf(`${letters}1`, counting);
    expect(await outputOf(`${letters}1`, counting)).toBe(numbered);
  });

  it("runs again if providers count their calls", async () => {
    for (const id of ["call_0", "functions.execute_code:0", "1", "toolcallnumberone"]) {
      const first = Number(await outputOf(id, counting));
      expect(Number(await outputOf(id, counting))).toBe(first + 1);
    }
  });
});
