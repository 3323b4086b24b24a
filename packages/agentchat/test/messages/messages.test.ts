import { describe, expect, it } from "vitest";
import {
  isAgentEvent,
  isAgentMessage,
  isChatMessage,
  messageToText,
  multiModalMessage,
  structuredMessage,
  textMessage,
  toolCallRequestEvent,
} from "../../src/index.ts";
import { agentMessageSchema, chatMessageSchema } from "../../src/messages/agent-message-schema.ts";
import { everyMessage } from "../support/every-message.ts";
import { throughJson } from "../support/through-json.ts";

describe.each(everyMessage.map((message) => [message.type, message] as const))("%s", (type, message) => {
  it("survives JSON, and matches the schema of saved messages", () => {
    expect(throughJson(message)).toEqual(message);
    expect(agentMessageSchema.parse(throughJson(message))).toEqual(message);
  });

  it("has an id, a creation time and a source", () => {
    expect(message.id).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    expect(new Date(message.createdAt).toISOString()).toBe(message.createdAt);
    expect(message.source).toBe("a");
  });

  it("is classified by the type guards", () => {
    expect(isAgentMessage(message)).toBe(true);
    expect(isChatMessage(message)).toBe(type.endsWith("Message"));
    expect(isAgentEvent(message)).toBe(type.endsWith("Event"));
    expect(chatMessageSchema.safeParse(message).success).toBe(type.endsWith("Message"));
  });
});

describe("isAgentMessage", () => {
  it("rejects a task result and an unknown type", () => {
    expect(isAgentMessage({ messages: [] })).toBe(false);
    expect(isAgentMessage({ type: "Else" })).toBe(false);
  });
});

describe("textMessage", () => {
  it("uses the given id and creation time", () => {
    const createdAt = "2026-11-20T18:44:00.000Z";
    expect(textMessage({ source: "a", id: "1", createdAt, content: "x" })).toEqual({
      type: "TextMessage",
      source: "a",
      id: "1",
      createdAt,
      metadata: {},
      content: "x",
    });
  });
});

describe("messageToText", () => {
  it("renders images, data and tool calls as text", () => {
    const content = [
      { type: "text", text: "look" },
      { type: "image", url: "https://example.org/a.png" },
    ] as const;
    expect(messageToText(multiModalMessage({ source: "a", content }))).toBe("look\n[image: https://example.org/a.png]");
    expect(messageToText(structuredMessage({ source: "a", content: { b: 1 } }))).toBe('{\n  "b": 1\n}');
    const calls = [{ id: "1", name: "add", arguments: '{"a":1}' }];
    expect(messageToText(toolCallRequestEvent({ source: "a", content: calls }))).toBe('add({"a":1})');
  });
});
