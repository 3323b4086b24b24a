import {
  componentModelSchema,
  parseComponentConfig,
  type ChatCompletionClient,
  type ComponentContext,
  type ComponentModel,
  type CreateOptions,
  type CreateResult,
  type JsonObject,
  type ModelInfo,
  type ModelMessage,
  type ModelUsage,
} from "@fenced/core";
import * as z from "zod";
import { toRecordedRequest } from "./record-entry.ts";
import { RecordWriter } from "./record-writer.ts";

/** What a `RecordingChatCompletionClient` is made from. */
export interface RecordingChatCompletionClientOptions {
  /** The client that really asks. */
  readonly client: ChatCompletionClient;
  /** Where the record goes: a JSON Lines file. Its folder is made. */
  readonly file: string;
  /** Goes on with a record that is there. Default: false, the first answer replaces it. */
  readonly append?: boolean;
}

const configSchema = z.strictObject({
  client: componentModelSchema,
  file: z.string().min(1),
  append: z.boolean().exactOptional(),
});

/**
 * Passes requests on to another client, and records them with their answers, for a `ReplayChatCompletionClient`.
 *
 * An answer is on the disk before the caller has it, so a crash keeps all earlier ones. Calls that fail, are aborted or
 * whose stream is left early are not recorded. Calls that overlap are recorded in the order in which they end.
 *
 * The record holds the messages, tools, schemas and answers in full, and what reaches a model may be private; keys and
 * headers are never part of it.
 *
 * @example
 * const client = new RecordingChatCompletionClient({ client: liveClient, file: "session.jsonl" });
 */
export class RecordingChatCompletionClient implements ChatCompletionClient {
  /** The `componentType` in dumped models. */
  static readonly componentType = "model";
  /** The version of the dumped config's shape. */
  static readonly componentVersion = 1;

  readonly #options: RecordingChatCompletionClientOptions;
  readonly #writer: RecordWriter;

  /** Nothing is written before the first answer. */
  constructor(options: RecordingChatCompletionClientOptions) {
    this.#options = options;
    this.#writer = new RecordWriter(options.file, options.append ?? false);
  }

  /** What the recorded model can do. */
  get modelInfo(): ModelInfo {
    return this.#options.client.modelInfo;
  }

  /** What all calls of the recorded client took so far. */
  get usage(): ModelUsage {
    return this.#options.client.usage;
  }

  /**
   * Makes a client, and the client in it, from a dumped config.
   *
   * @throws ComponentError if the config has another shape.
   */
  static async fromConfig(config: JsonObject, context: ComponentContext): Promise<RecordingChatCompletionClient> {
    const { client, ...options } = parseComponentConfig(configSchema, config, context.provider);
    return new RecordingChatCompletionClient({ ...options, client: await context.load(client) });
  }

  /**
   * Asks the client, and records what it answers.
   *
   * @throws ModelClientError if the answer cannot be recorded; and whatever the client throws.
   */
  async create(messages: readonly ModelMessage[], options: CreateOptions = {}): Promise<CreateResult> {
    const request = toRecordedRequest(messages, options);
    const result = await this.#options.client.create(messages, options);
    await this.#writer.write({ version: 1, modelInfo: this.modelInfo, request, result });
    return result;
  }

  /**
   * The same, as it is written; the chunks are recorded as they come.
   *
   * @throws as `create` does.
   */
  async *createStream(
    messages: readonly ModelMessage[],
    options: CreateOptions = {},
  ): AsyncGenerator<string | CreateResult, void, undefined> {
    const request = toRecordedRequest(messages, options);
    const chunks: string[] = [];
    for await (const item of this.#options.client.createStream(messages, options)) {
      if (typeof item === "string") chunks.push(item);
      else await this.#writer.write({ version: 1, modelInfo: this.modelInfo, request, chunks, result: item });
      yield item;
    }
  }

  /**
   * The settings of this client and of the client in it, as plain JSON.
   *
   * @throws ComponentError if that client cannot be dumped.
   */
  dumpComponent(): ComponentModel {
    const { client, file, append } = this.#options;
    return {
      provider: "@fenced/model-replay:RecordingChatCompletionClient",
      componentType: "model",
      version: 1,
      config: { client: { ...client.dumpComponent() }, file, ...(append !== undefined && { append }) },
    };
  }
}
