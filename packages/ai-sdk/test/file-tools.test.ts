import { FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { generateText, stepCountIs } from "ai";
import { afterAll, describe, expect, it } from "vitest";
import { fileTools } from "../src/index.ts";
import { modelOf, toolMessage } from "./support/model.ts";

process.removeAllListeners("warning");

const executor = new LocalCommandLineCodeExecutor();
afterAll(() => executor.stop());
const tools = fileTools(executor, { maxCharacters: 10, maxFiles: 2, maxWriteBytes: 50 });

type Input = object;
async function call(name: keyof typeof tools, input: Input): Promise<unknown> {
  const execute: unknown = tools[name].execute?.bind(tools[name]);
  if (typeof execute !== "function") throw new Error("the tool cannot be executed");
  return Reflect.apply(execute, undefined, [input, { toolCallId: "1", messages: [] }]);
}

describe("fileTools", () => {
  it("let a model write, read and list files, and report errors to it", async () => {
    const calls = [
      { id: "1", name: "write_file", arguments: JSON.stringify({ path: "in/a.txt", content: "grüße" }) },
      { id: "2", name: "read_file", arguments: JSON.stringify({ path: "in/a.txt" }) },
      { id: "3", name: "list_files", arguments: "{}" },
      { id: "4", name: "read_file", arguments: JSON.stringify({ path: "in/b.txt" }) },
    ];
    await using server = await startOpenAIServer([
      ...calls.map((toolCall) => ({ toolCalls: [toolCall] })),
      { text: "done" },
    ]);
    const stopWhen = stepCountIs(6);
    const { text, steps } = await generateText({
      model: modelOf(server),
      tools,
      stopWhen,
      prompt: "Go.",
      maxRetries: 0,
    });
    expect(text).toBe("done");
    expect(steps.flatMap(({ toolResults }) => toolResults.map(({ output }): unknown => output))).toEqual([
      { path: "in/a.txt", bytes: 7 },
      { text: "grüße", size: 7 },
      { files: [{ path: "in/a.txt", size: 7 }], total: 1 },
    ]);
    expect(toolMessage(server, 4)).toMatch(/in\/b\.txt/);
  });

  it("read a long file in parts without splitting characters", async () => {
    const content = "äöü€😀".repeat(7);
    await executor.files.write("long.txt", content);
    let text = "";
    const lengths: number[] = [];
    for (let offset: number | undefined = 0; offset !== undefined;) {
      const part = await call("read_file", { path: "long.txt", offset });
      expect(part).toMatchObject({ text: expect.any(String), size: Buffer.byteLength(content) });
      const { text: piece, nextOffset } = part as { text: string; nextOffset?: number };
      text += piece;
      lengths.push(Array.from(piece).length);
      offset = nextOffset;
    }
    expect(text).toBe(content);
    expect(lengths).toEqual([10, 10, 10, 5]);
  });

  it("reject files that are not text, too long, missing or outside the workspace", async () => {
    await executor.files.write("bytes", Uint8Array.of(1, 0, 2));
    await executor.files.write("latin", Uint8Array.of(0x66, 0xfc, 0x72));
    const refused: [keyof typeof tools, Input, { isInstance(value: unknown): boolean }][] = [
      ["read_file", { path: "bytes", offset: 0 }, InvalidInputError],
      ["read_file", { path: "latin", offset: 0 }, InvalidInputError],
      ["read_file", { path: ".", offset: 0 }, InvalidInputError],
      ["read_file", { path: "none", offset: 0 }, FileNotFoundError],
      ["read_file", { path: "../x", offset: 0 }, WorkspacePathError],
      ["write_file", { path: "/etc/x", content: "" }, WorkspacePathError],
      ["write_file", { path: "x", content: "x".repeat(51) }, InvalidInputError],
      ["list_files", { directory: "none" }, FileNotFoundError],
    ];
    for (const [name, input, kind] of refused) {
      await expect(call(name, input)).rejects.toSatisfy((error) => kind.isInstance(error));
    }
    expect(await call("list_files", {})).toMatchObject({ files: [{}, {}], total: 4 });
    expect(() => fileTools(executor, { maxFiles: 0 })).toThrow(InvalidInputError);
  });
});
