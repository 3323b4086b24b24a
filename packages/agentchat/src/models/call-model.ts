import {
  type ChatCompletionClient,
  type CreateOptions,
  type CreateResult,
  type FinishReason,
  ModelClientError,
  type ModelMessage,
} from "@fenced/core";
import { abortable, abortableStream } from "../common/abortable.ts";
import { signalOption } from "../common/signal-option.ts";
import type { ModelClientStreamingChunkEvent } from "../messages/agent-event.ts";
import { streamingChunkEvent } from "../messages/create-message.ts";
import { replaceImages } from "../messages/message-to-model-messages.ts";
import { watchModelCall } from "../telemetry/watch-model-call.ts";

const graceMs = 1000;

/** Options of `callModel`. */
export interface CallModelOptions {
  readonly modelClient: ChatCompletionClient;
  /** Whether to yield the model's text as it is generated, and as which agent's. */
  readonly stream: boolean;
  readonly source: string;
  /** The id of the message that the answer will become. */
  readonly messageId: string;
  readonly signal: AbortSignal | undefined;
  /** Tools, and the schema of the answer. */
  readonly request?: Omit<CreateOptions, "signal"> | undefined;
}

/** A model's answer, and the part of its text that was streamed before. */
export interface ModelCall {
  readonly result: CreateResult;
  readonly streamed: string;
}

/** Asks a model, yields its text as it is generated if `stream` is set, and returns its whole answer. */
export async function* callModel(
  messages: readonly ModelMessage[],
  options: CallModelOptions,
): AsyncGenerator<ModelClientStreamingChunkEvent, ModelCall, void> {
  const { modelClient, stream, signal, request } = options;
  const { modelInfo } = modelClient;
  signal?.throwIfAborted();
  const seen = modelInfo.vision ? messages : replaceImages(messages);
  const call = { modelInfo, messages: seen, stream, request };
  const answer = yield* watchModelCall(call, (onChunk) => ask(seen, options, onChunk));
  assertAnswered(answer.result, modelInfo.family);
  return answer;
}

/** @throws ModelClientError if the model was stopped before it said anything: an empty answer would look like its own. */
function assertAnswered({ content, finishReason }: CreateResult, family: string): void {
  const isEmpty = typeof content === "string" ? content.trim() === "" : content.length === 0;
  const stopped = stops[finishReason];
  if (isEmpty && stopped !== undefined) throw new ModelClientError(`Model "${family}" ${stopped.problem}`, stopped);
}

const stops: Partial<Record<FinishReason, { readonly problem: string; readonly remedy: string }>> = {
  "content-filter": {
    problem: "gave no answer, because the service's content filter withheld it",
    remedy: "Phrase the request differently, or change the service's filter.",
  },
  length: {
    problem: "gave no answer before it reached its limit of tokens",
    remedy: "Raise maxOutputTokens, shorten the conversation, or have the model think less.",
  },
  error: { problem: "gave no answer, because the service failed", remedy: "Try again." },
};

async function* ask(
  messages: readonly ModelMessage[],
  { modelClient, stream, source, messageId, signal, request }: CallModelOptions,
  onChunk: () => void,
): AsyncGenerator<ModelClientStreamingChunkEvent, ModelCall, void> {
  const createOptions: CreateOptions = { ...request, ...signalOption(signal) };
  if (!stream) {
    const result = await abortable(modelClient.create(messages, createOptions), { signal, graceMs });
    return { result, streamed: "" };
  }
  let streamed = "";
  for await (const item of abortableStream(modelClient.createStream(messages, createOptions), { signal, graceMs })) {
    if (typeof item !== "string") return { result: item, streamed };
    onChunk();
    streamed += item;
    if (item !== "") yield streamingChunkEvent({ source, content: item, fullMessageId: messageId });
  }
  throw new ModelClientError("The model's stream ended without its result", {
    remedy: "Make createStream() yield one CreateResult after the text.",
  });
}
