import { createAnthropic } from "@ai-sdk/anthropic";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { convertToModelMessages, generateText, stepCountIs } from "ai";
import { describe, expect, it, onTestFinished } from "vitest";
import { codeExecutionTool } from "../src/index.ts";
import { startAnthropicServer } from "./support/anthropic-server.ts";
import { callWith, modelOf, toolMessage } from "./support/model.ts";
import { PictureExecutor, pixel } from "./support/picture-executor.ts";

const stopWhen = stepCountIs(3);
const data = pixel.toString("base64");

function pictureExecutor(): PictureExecutor {
  const executor = new PictureExecutor({});
  onTestFinished(() => executor.stop());
  return executor;
}

describe("images", () => {
  it("reach the model as images, up to maxImages", async () => {
    const input = { language: "draw", code: "one\ntwo\nthree" };
    await using server = await startAnthropicServer([
      [{ type: "tool_use", id: "call-1", name: "execute_code", input }],
      [{ type: "text", text: "done" }],
    ]);
    const model = createAnthropic({ baseURL: server.baseURL, apiKey: "none" })("claude-sonnet-4-5");
    const tools = { execute_code: codeExecutionTool(pictureExecutor(), { maxImages: 2 }) };
    const { text, steps } = await generateText({ model, tools, stopWhen, prompt: "Draw." });
    expect(text).toBe("done");
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
    const told = { type: "text", text: "one\ntwo\nthree\n\n1 image was created that is not shown here." };
    expect(server.requests[1]).toMatchObject({
      messages: [{}, {}, { content: [{ type: "tool_result", tool_use_id: "call-1", content: [told, image, image] }] }],
    });
    const shown = { mediaType: "image/png", data };
    expect(steps[0]?.toolResults[0]?.output).toMatchObject({ images: [shown, shown] });
  });

  it("are in the result but not sent if imagesToModel is false", async () => {
    await using server = await startOpenAIServer([callWith("one", "draw"), { text: "done" }]);
    const tools = { execute_code: codeExecutionTool(pictureExecutor(), { imagesToModel: false }) };
    const { steps } = await generateText({ model: modelOf(server), tools, stopWhen, prompt: "Draw." });
    expect(toolMessage(server)).toBe("one\n\nThe code showed 1 image, which you cannot see.");
    expect(steps[0]?.toolResults[0]?.output).toMatchObject({ images: [{ data }] });
  });

  it("are left out if they are too large", async () => {
    await using server = await startOpenAIServer([callWith("one", "draw"), { text: "done" }]);
    const tools = { execute_code: codeExecutionTool(pictureExecutor(), { maxImageBytes: pixel.length - 1 }) };
    await generateText({ model: modelOf(server), tools, stopWhen, prompt: "Draw." });
    expect(toolMessage(server)).toBe("one\n\n1 image was created that is not shown here.");
  });
});

describe("a stored chat", () => {
  it("tells the model that a call did not finish", async () => {
    const tools = { execute_code: codeExecutionTool(pictureExecutor()) };
    const part = { type: "tool-execute_code", toolCallId: "1", state: "output-available", input: {} } as const;
    const messages = await convertToModelMessages(
      [
        {
          role: "assistant",
          parts: [{ ...part, output: { status: "running", output: "so far\n" }, preliminary: true }],
        },
      ],
      { tools },
    );
    expect(messages[1]).toMatchObject({
      content: [{ output: { value: "The code did not finish. Its last output was:\nso far\n" } }],
    });
  });
});
