import type { CreateOptions, CreateResult, ModelInfo, ModelMessage } from "@fenced/core";
import { type Operation, type TelemetryAttributes, watchStream } from "@fenced/core/telemetry";
import { callDuration, conventions, tokenUsage, usageAttributes } from "./conventions.ts";
import { finishReason, inputMessages, outputMessages } from "./message-content.ts";

/**
 * Watches a model call, with any client.
 *
 * @param ask - calls the model, yields what is streamed, and reports every chunk.
 */
export function watchModelCall<Chunk, Call extends { readonly result: CreateResult }>(
  {
    modelInfo,
    messages,
    stream,
    request,
  }: {
    readonly modelInfo: ModelInfo;
    readonly messages: readonly ModelMessage[];
    readonly stream: boolean;
    readonly request: Omit<CreateOptions, "signal"> | undefined;
  },
  ask: (onChunk: () => void) => AsyncGenerator<Chunk, Call, void>,
): AsyncGenerator<Chunk, Call, void> {
  const common: TelemetryAttributes = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": modelInfo.provider ?? "_OTHER",
    "gen_ai.request.model": modelInfo.family === "unknown" ? undefined : modelInfo.family,
  };
  const attributes = {
    ...common,
    "gen_ai.request.stream": stream ? true : undefined,
    "gen_ai.output.type": request?.jsonSchema === undefined ? undefined : "json",
  };
  const name = modelInfo.family === "unknown" ? "chat" : `chat ${modelInfo.family}`;
  return watchStream(
    { ...conventions, name, kind: "client", attributes, duration: callDuration, metricAttributes: common },
    (operation) => {
      operation.setContent(() => ({ "gen_ai.input.messages": inputMessages(messages) }));
      return ask(firstChunkTimer(operation));
    },
    (operation, { result }) => reportAnswer(operation, result, common),
  );
}

/** Returns a function that records when the first chunk came; later calls do nothing. */
function firstChunkTimer(operation: Operation): () => void {
  const started = performance.now();
  let came = false;
  return () => {
    if (came) return;
    came = true;
    operation.set({ "gen_ai.response.time_to_first_chunk": (performance.now() - started) / 1000 });
  };
}

function reportAnswer(operation: Operation, result: CreateResult, common: TelemetryAttributes): void {
  const { promptTokens, completionTokens } = result.usage;
  operation.set({ ...usageAttributes(result.usage), "gen_ai.response.finish_reasons": [finishReason(result)] });
  operation.setContent(() => ({ "gen_ai.output.messages": outputMessages(result) }));
  if (promptTokens > 0) operation.record(tokenUsage, promptTokens, { ...common, "gen_ai.token.type": "input" });
  if (completionTokens > 0) {
    operation.record(tokenUsage, completionTokens, { ...common, "gen_ai.token.type": "output" });
  }
}
