import { ComponentError, InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  type AgentMessage,
  BaseChatAgent,
  type ChatMessage,
  isResponse,
  isTaskResult,
  messageToText,
  type AgentResponse,
  streamingChunkEvent,
  textMessage,
  thoughtEvent,
} from "../../src/index.ts";
import { collect, types } from "../support/collect.ts";

class Echo extends BaseChatAgent {
  override async *onMessagesStream(messages: readonly ChatMessage[]): AsyncGenerator<AgentMessage | AgentResponse> {
    const { name: source } = this;
    const thought = thoughtEvent({ source, content: "hm" });
    yield thought;
    yield streamingChunkEvent({ source, content: "e", fullMessageId: "1" });
    const chatMessage = textMessage({ source, content: messages.map(messageToText).join(), id: "1" });
    yield { chatMessage, innerMessages: [thought] };
  }
}

class Broken extends BaseChatAgent {
  override async *onMessagesStream(): AsyncGenerator<AgentResponse> {}
}

const echo = new Echo({ name: "echo", description: "Repeats." });

describe("BaseChatAgent", () => {
  it("requires only onMessagesStream to be implemented", async () => {
    const response = await echo.onMessages([textMessage({ source: "user", content: "a" })]);
    expect(response.chatMessage.content).toBe("a");
    const { messages, stopReason } = await echo.run({ task: "b" });
    expect(types(messages)).toEqual(["TextMessage", "ThoughtEvent", "TextMessage"]);
    expect(stopReason).toBeUndefined();
  });

  it("streams the task, all events and chunks, the answer and the result", async () => {
    const items = await collect(echo.runStream({ task: "b" }));
    expect(types(items)).toEqual([
      "TextMessage",
      "ThoughtEvent",
      "ModelClientStreamingChunkEvent",
      "TextMessage",
      "end",
    ]);
    expect(items.map((item) => isTaskResult(item))).toEqual([false, false, false, false, true]);
    expect(items.some((item) => isResponse(item))).toBe(false);
  });

  it("runs without a task", async () => {
    expect((await echo.run()).messages.map(messageToText)).toEqual(["hm", ""]);
  });

  it("throws if the stream yields no response", async () => {
    const broken = new Broken({ name: "broken", description: "" });
    await expect(broken.onMessages([])).rejects.toThrow("ended without its result");
    await expect(broken.run()).rejects.toThrow("ended without an AgentResponse");
  });

  it("rejects with the reason if the signal is already aborted", async () => {
    const signal = AbortSignal.abort("stop");
    await expect(echo.onMessages([], { signal })).rejects.toBe("stop");
    await expect(echo.run({ signal })).rejects.toBe("stop");
  });

  it("resets, saves, loads and disposes without state, and cannot be dumped", async () => {
    await echo.reset();
    await echo.loadState(await echo.saveState());
    await echo[Symbol.asyncDispose]();
    expect(() => echo.dumpComponent()).toThrow(ComponentError);
  });

  it.each(["", "two words", "1st", "a/b", "é", "a".repeat(65)])("rejects the name %j", (name) => {
    expect(() => new Echo({ name, description: "" })).toThrow(InvalidInputError);
  });

  it.each(["coder", "_x", "Coder-2"])("accepts the name %j", (name) => {
    expect(new Echo({ name, description: "" }).name).toBe(name);
  });
});
