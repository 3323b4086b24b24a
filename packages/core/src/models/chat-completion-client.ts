import type { ComponentModel } from "../components/component-model.ts";
import type { JsonObject } from "../json-value.ts";
import type { ModelMessage, ToolCall } from "./model-messages.ts";

/** What a model can do. */
export interface ModelInfo {
  /** The model's family or full name, e.g. `"gpt-4o"`; `"unknown"` if it cannot be told. */
  readonly family: string;
  /**
   * Who serves the model, as OpenTelemetry's GenAI conventions name it: `"openai"`, `"azure.ai.openai"`, `"anthropic"`.
   * For telemetry. Default: not known.
   */
  readonly provider?: string;
  /** It understands images. */
  readonly vision: boolean;
  /** It can call tools. */
  readonly functionCalling: boolean;
  /** It can be held to a JSON schema. */
  readonly structuredOutput: boolean;
  /** Tokens that fit in one request and its answer together, if known. */
  readonly contextWindow?: number;
}

/** Tokens that a call, or all calls of a client, took. */
export interface ModelUsage {
  /** Tokens of the request. */
  readonly promptTokens: number;
  /** Tokens of the answer, reasoning included. */
  readonly completionTokens: number;
}

/** A tool as a model sees it. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments: an object type. */
  readonly parameters: JsonObject;
}

/** What one model call may say besides its messages. */
export interface CreateOptions {
  /** Tools that the model may ask to have called. */
  readonly tools?: readonly ToolSchema[];
  /** JSON Schema that the answer's text must follow. Needs `modelInfo.structuredOutput`. */
  readonly jsonSchema?: JsonObject;
  /** Ends the request; the call then rejects with `signal.reason`. */
  readonly signal?: AbortSignal;
}

/** Why a model stopped writing. */
export type FinishReason = "stop" | "length" | "tool-calls" | "content-filter" | "error" | "unknown";

/** A model's whole answer. */
export interface CreateResult {
  /** Its text, or the tools that it wants called. */
  readonly content: string | readonly ToolCall[];
  /** Its reasoning, or the text that it wrote next to tool calls. */
  readonly thought?: string;
  /** What this call took. Zeros if the service does not say. */
  readonly usage: ModelUsage;
  readonly finishReason: FinishReason;
}

/** A chat model. */
export interface ChatCompletionClient {
  readonly modelInfo: ModelInfo;

  /** What all calls of this client took so far. */
  readonly usage: ModelUsage;

  /**
   * Asks the model for its next message.
   *
   * @throws ModelClientError if the call failed.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  create(messages: readonly ModelMessage[], options?: CreateOptions): Promise<CreateResult>;

  /** The same, as it is written: chunks of text, then exactly one `CreateResult`. Leaving the loop ends the request. */
  createStream(messages: readonly ModelMessage[], options?: CreateOptions): AsyncIterable<string | CreateResult>;

  /**
   * The client's settings as plain JSON, for `loadComponent`. Keys and tokens are never part of it.
   *
   * @throws ComponentError if a setting cannot be dumped.
   */
  dumpComponent(): ComponentModel;
}
