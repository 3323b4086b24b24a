import { InvalidInputError } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import type * as z from "zod";
import { toJson } from "../common/json.ts";
import type { AgentMessage } from "./agent-event.ts";
import { agentMessageSchema, chatMessageSchema } from "./agent-message-schema.ts";
import type { ChatMessage } from "./chat-message.ts";

/**
 * Returns a valid message unchanged. Any message accepted here can be saved and loaded again.
 *
 * @param what - names the value in the error message.
 * @throws InvalidInputError if it is of an unknown type, or one of its fields is unknown or wrong.
 */
export function checkChatMessage(message: ChatMessage, what: string): ChatMessage {
  check(chatMessageSchema, message, what);
  return message;
}

/** The same for messages and events. */
export function checkAgentMessage(message: AgentMessage, what: string): AgentMessage {
  check(agentMessageSchema, message, what);
  return message;
}

function check(schema: z.ZodType, message: unknown, what: string): void {
  const owner = `${what} is not a message`;
  if (typeof message === "object" && message !== null) {
    checkOptions(schema, toJson(message), owner);
    return;
  }
  throw new InvalidInputError(`${owner}: it is ${message === null ? "null" : `a ${typeof message}`}`, {
    remedy: "Use text, or what textMessage() and the other functions for messages return.",
  });
}
