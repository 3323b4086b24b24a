import {
  type ChatCompletionClient,
  type Component,
  ComponentError,
  type ComponentModel,
  type CreateOptions,
  type CreateResult,
  defineComponent,
  type ModelInfo,
  type ModelMessage,
  type ModelUsage,
} from "@fenced/core";
import { joinSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import { generateText, streamText } from "ai";
import {
  type AISDKChatCompletionClientOptions,
  type CheckedClientOptions,
  clientConfigSchema,
  clientOptions,
} from "./ai-sdk-chat-completion-client-options.ts";
import { Answer } from "./answer.ts";
import { checkJson } from "./check-json.ts";
import { checkModelVersion } from "./check-model-version.ts";
import { checkRequest } from "./check-request.ts";
import { defaultModelInfo } from "./default-model-info.ts";
import { toAISDKRequest, type AISDKRequest } from "./to-ai-sdk-request.ts";
import { toModelClientError } from "./to-model-client-error.ts";
import { ToolTurns } from "./tool-turns.ts";

/**
 * A chat model of any Vercel AI SDK provider.
 *
 * Calls are independent of each other and may overlap. A failed call throws a `ModelClientError` that says what to do
 * and never contains keys.
 *
 * @example
 * const lmStudio = createOpenAICompatible({ name: "lm-studio", baseURL: "http://localhost:1234/v1", includeUsage: true });
 * const client = new AISDKChatCompletionClient({ model: lmStudio("qwen3-coder-30b") });
 * const { content } = await client.create([{ role: "user", content: "What is a fence?" }]);
 */
export class AISDKChatCompletionClient implements ChatCompletionClient {
  /** How `loadComponent` creates it. */
  static readonly component: Component<AISDKChatCompletionClient> = defineComponent({
    provider: "@fenced/model-ai-sdk:AISDKChatCompletionClient",
    componentType: "model",
    schema: clientConfigSchema,
    load: (options) => new AISDKChatCompletionClient(options),
  });

  /** What the model can do, as far as its id and object tell, with the overrides from the options. */
  readonly modelInfo: ModelInfo;

  readonly #options: CheckedClientOptions;
  readonly #toolTurns = new ToolTurns();
  #usage: ModelUsage = { promptTokens: 0, completionTokens: 0 };

  /**
   * Sends nothing before the first call.
   *
   * @throws InvalidInputError if an option is unknown or wrong, or the model is newer than the installed AI SDK.
   */
  constructor(options: AISDKChatCompletionClientOptions) {
    this.#options = checkOptions(clientOptions, options, "AISDKChatCompletionClient");
    checkModelVersion(this.#options.model);
    this.modelInfo = { ...defaultModelInfo(this.#options.model), ...this.#options.modelInfo };
  }

  /** Tokens used by all calls of this client so far, except failed and aborted ones, whose usage services do not report. */
  get usage(): ModelUsage {
    return this.#usage;
  }

  /**
   * Asks the model for its next message.
   *
   * @throws ModelClientError if the call failed, or `jsonSchema` was given and the answer is not JSON.
   * @throws InvalidInputError if a message or an option is unknown or wrong, or the call needs something that the model
   * cannot do according to its `modelInfo`.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  async create(messages: readonly ModelMessage[], createOptions: CreateOptions = {}): Promise<CreateResult> {
    const options = checkRequest(messages, createOptions, this.modelInfo);
    options.signal?.throwIfAborted();
    try {
      const result = await untilAborted(generateText(this.#request(messages, options)), options.signal);
      const answer = new Answer();
      for (const part of result.content) {
        if (part.type === "text" || part.type === "reasoning" || part.type === "tool-call") answer.add(part);
      }
      return this.#settle(answer.finish(result.finishReason, result.usage), result.response.messages, options);
    } catch (error) {
      options.signal?.throwIfAborted();
      throw toModelClientError(error, this.#modelId);
    }
  }

  /**
   * Does the same as a stream: yields chunks of the answer's text (including text next to tool calls, which becomes the
   * result's `thought`), then exactly one `CreateResult`. Reasoning is only in the result. Leaving the loop ends the
   * request. After the first chunk, failures are not retried.
   *
   * @throws as `create` does.
   */
  async *createStream(
    messages: readonly ModelMessage[],
    createOptions: CreateOptions = {},
  ): AsyncGenerator<string | CreateResult, void, undefined> {
    const options = checkRequest(messages, createOptions, this.modelInfo);
    options.signal?.throwIfAborted();
    const leaving = new AbortController();
    const signal = joinSignals(leaving.signal, options.signal);
    try {
      const stream = streamText({ ...this.#request(messages, { ...options, signal }), onError: () => undefined });
      const reader = stream.fullStream.getReader();
      const answer = new Answer();
      for (;;) {
        const { done, value: part } = await untilAborted(reader.read(), signal);
        if (done) throw new Error("the stream ended early");
        if (part.type === "error") throw toModelClientError(part.error, this.#modelId);
        if (part.type === "tool-call") answer.add(part);
        if (part.type === "reasoning-delta") answer.add({ type: "reasoning", text: part.text });
        if (part.type === "text-delta" && part.text !== "") {
          answer.add({ type: "text", text: part.text });
          yield part.text;
        }
        if (part.type === "finish") {
          const response = await untilAborted(stream.response, signal);
          yield this.#settle(answer.finish(part.finishReason, part.totalUsage), response.messages, options);
          return;
        }
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      throw toModelClientError(error, this.#modelId);
    } finally {
      leaving.abort();
    }
  }

  /**
   * Returns the client's settings as plain JSON.
   *
   * @throws ComponentError if the client was created with a model object, which contains functions and perhaps keys. A
   * client created with a model id can be dumped.
   */
  dumpComponent(): ComponentModel {
    const { model, ...settings } = this.#options;
    if (typeof model !== "string") {
      throw new ComponentError(`The model object "${model.modelId}" of ${model.provider} cannot be dumped`, {
        remedy: `Pass a model id instead, e.g. { model: "openai/gpt-5" }, and set the AI SDK's global provider.`,
      });
    }
    return AISDKChatCompletionClient.component.dump({ model, ...settings });
  }

  get #modelId(): string {
    return typeof this.#options.model === "string" ? this.#options.model : this.#options.model.modelId;
  }

  #request(messages: readonly ModelMessage[], options: CreateOptions): AISDKRequest {
    return toAISDKRequest(messages, options, this.#options, (calls) => this.#toolTurns.recall(calls));
  }

  #settle(
    result: CreateResult,
    response: Parameters<ToolTurns["remember"]>[1],
    { jsonSchema }: CreateOptions,
  ): CreateResult {
    this.#usage = {
      promptTokens: this.#usage.promptTokens + result.usage.promptTokens,
      completionTokens: this.#usage.completionTokens + result.usage.completionTokens,
    };
    if (typeof result.content !== "string") this.#toolTurns.remember(result.content, response);
    else if (jsonSchema !== undefined) checkJson(result.content, result.finishReason, this.#modelId);
    return result;
  }
}
