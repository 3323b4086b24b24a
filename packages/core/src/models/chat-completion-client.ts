import type { ComponentModel } from "../components/component-model.ts";
import type { JsonObject } from "../json-value.ts";
import type { ModelMessage, ToolCall } from "./model-messages.ts";

/** What a model can do. */
export interface ModelInfo {
  /** The model's family or full name, e.g. `"gpt-4o"`; `"unknown"` if it cannot be determined. */
  readonly family: string;
  /**
   * The model's provider, as OpenTelemetry's GenAI conventions name it: `"openai"`, `"azure.ai.openai"`, `"anthropic"`.
   * For telemetry. Default: unknown.
   */
  readonly provider?: string;
  /** It understands images. */
  readonly vision: boolean;
  /** It can call tools. */
  readonly functionCalling: boolean;
  /** It can return JSON that matches a schema. */
  readonly structuredOutput: boolean;
  /** Size of the context window, request and response together, in tokens, if known. */
  readonly contextWindow?: number;
}

/** Tokens used by one call, or by all calls of a client. */
export interface ModelUsage {
  /** Tokens in the request. */
  readonly promptTokens: number;
  /** Tokens in the response, including reasoning. */
  readonly completionTokens: number;
}

/** A tool as described to a model. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments: an object type. */
  readonly parameters: JsonObject;
}

/** Options of one model call. */
export interface CreateOptions {
  /** Tools that the model may call. Default: none. */
  readonly tools?: readonly ToolSchema[] | undefined;
  /** JSON Schema that the response's text must match. Needs `modelInfo.structuredOutput`. */
  readonly jsonSchema?: JsonObject | undefined;
  /** Cancels the request; the call then rejects with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
}

/** Why a model stopped writing. */
export type FinishReason = "stop" | "length" | "tool-calls" | "content-filter" | "error" | "unknown";

/** A model's complete response. */
export interface CreateResult {
  /** Its text, or the tools it wants to call. */
  readonly content: string | readonly ToolCall[];
  /** Its reasoning, or the text it wrote next to tool calls. */
  readonly thought?: string;
  /** The part of `thought` next to tool calls that is reasoning, not text, if the client can tell. */
  readonly reasoning?: string;
  /** Tokens used by this call; zeros if the service does not report them. */
  readonly usage: ModelUsage;
  readonly finishReason: FinishReason;
}

/** A chat model. */
export interface ChatCompletionClient {
  readonly modelInfo: ModelInfo;

  /** Tokens used by all calls of this client so far. */
  readonly usage: ModelUsage;

  /**
   * Asks the model for its next message.
   *
   * @throws ModelClientError if the call failed.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  create(messages: readonly ModelMessage[], options?: CreateOptions): Promise<CreateResult>;

  /**
   * Does the same as a stream: yields chunks of text, then exactly one `CreateResult`. Leaving the loop ends the
   * request.
   */
  createStream(messages: readonly ModelMessage[], options?: CreateOptions): AsyncIterable<string | CreateResult>;

  /**
   * Returns the client's settings as plain JSON, for `loadComponent`. They never include keys or tokens.
   *
   * @throws ComponentError if a setting cannot be dumped.
   */
  dumpComponent(): ComponentModel;
}
