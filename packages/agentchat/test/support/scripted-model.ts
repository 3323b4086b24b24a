import type {
  ChatCompletionClient,
  ComponentModel,
  CreateOptions,
  CreateResult,
  JsonObject,
  ModelInfo,
  ModelMessage,
  ModelUsage,
  ToolCall,
} from "@fenced/core";

/** One answer: text, tool calls, a whole result, or a function of the request. */
export type ScriptedAnswer =
  | string
  | readonly ToolCall[]
  | Partial<CreateResult>
  | ((request: ScriptedRequest) => Promise<Partial<CreateResult> | string> | string);

export interface ScriptedRequest {
  readonly messages: readonly ModelMessage[];
  readonly options: CreateOptions;
}

const usage: ModelUsage = { promptTokens: 10, completionTokens: 5 };

/** A model that answers from a list and records its requests. */
export class ScriptedModel implements ChatCompletionClient {
  readonly modelInfo: ModelInfo;
  readonly requests: ScriptedRequest[] = [];
  readonly #answers: ScriptedAnswer[];

  constructor(answers: readonly ScriptedAnswer[], modelInfo: Partial<ModelInfo> = {}) {
    this.#answers = [...answers];
    this.modelInfo = {
      family: "scripted",
      vision: false,
      functionCalling: true,
      structuredOutput: true,
      ...modelInfo,
    };
  }

  static fromConfig(config: JsonObject): ScriptedModel {
    return new ScriptedModel(Array.isArray(config["answers"]) ? config["answers"].map(String) : []);
  }

  get usage(): ModelUsage {
    const count = this.requests.length;
    return { promptTokens: 10 * count, completionTokens: 5 * count };
  }

  async create(messages: readonly ModelMessage[], options: CreateOptions = {}): Promise<CreateResult> {
    options.signal?.throwIfAborted();
    const request = { messages: structuredClone(messages), options };
    this.requests.push(request);
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error(`The script has no answer ${this.requests.length}.`);
    const given = typeof answer === "function" ? await answer(request) : answer;
    const partial = typeof given === "string" || isToolCalls(given) ? { content: given } : given;
    const finishReason = isToolCalls(partial.content) ? "tool-calls" : "stop";
    return { content: "", usage, finishReason, ...partial };
  }

  /** Streams word by word. */
  async *createStream(
    messages: readonly ModelMessage[],
    options: CreateOptions = {},
  ): AsyncGenerator<string | CreateResult> {
    const result = await this.create(messages, options);
    const text = typeof result.content === "string" ? result.content : (result.thought ?? "");
    for (const word of text.match(/\s*\S+\s*/g) ?? []) yield word;
    yield result;
  }

  dumpComponent(): ComponentModel {
    const config = { answers: this.#answers.map(String) };
    return { provider: "@fenced/scripted:ScriptedModel", componentType: "model", version: 1, config };
  }
}

export function call(name: string, args: JsonObject | string = {}, id: string = `call-${name}`): ToolCall {
  return { id, name, arguments: typeof args === "string" ? args : JSON.stringify(args) };
}

/** An answer that never comes: it rejects when the request is aborted. */
export function never(started?: () => void): ScriptedAnswer {
  return ({ options: { signal } }) =>
    new Promise((_, reject) => {
      signal?.addEventListener("abort", () => reject(new Error("the client's own abort error")), { once: true });
      started?.();
    });
}

function isToolCalls(value: unknown): value is readonly ToolCall[] {
  return Array.isArray(value);
}
