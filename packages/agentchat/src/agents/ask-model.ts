import { randomUUID } from "node:crypto";
import type { ChatCompletionClient, CreateOptions, ModelMessage } from "@fenced/core";
import type { AgentMessage } from "../messages/agent-event.ts";
import { callModel } from "../models/call-model.ts";
import type { ModelAnswer, Turn } from "./turn.ts";

/** How a turn asks a model. */
export interface AskModelOptions {
  readonly modelClient: ChatCompletionClient;
  readonly stream: boolean;
  readonly request?: Omit<CreateOptions, "signal">;
}

/** Asks the model, yields chunks and the model's thought, and returns its answer. */
export async function* askModel(
  turn: Turn,
  messages: readonly ModelMessage[],
  options: AskModelOptions,
): AsyncGenerator<AgentMessage, ModelAnswer, void> {
  const messageId = randomUUID();
  const { source, signal } = turn;
  const { result, streamed } = yield* callModel(messages, { ...options, source, signal, messageId });
  // The text next to tool calls becomes the thought; do not repeat it to a reader who has seen its chunks.
  const wasStreamed = typeof result.content !== "string" && streamed !== "" && streamed === result.thought;
  yield* turn.thoughtOf(result, wasStreamed ? messageId : undefined);
  return { messageId, result };
}
