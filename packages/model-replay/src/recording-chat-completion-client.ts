import {
  type ChatCompletionClient,
  type Component,
  type ComponentModel,
  componentModelSchema,
  type CreateOptions,
  type CreateResult,
  defineComponent,
  type ModelInfo,
  type ModelMessage,
  type ModelUsage,
} from "@fenced/core";
import {
  checkCreateArguments,
  checkOptions,
  modelClientOption,
  optionsSchema,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { toRecordedRequest, toRecordEntry, type RecordEntry } from "./record-entry.ts";
import { RecordWriter } from "./record-writer.ts";

/** Options of `RecordingChatCompletionClient`. */
export interface RecordingChatCompletionClientOptions {
  /** The client that asks the model. */
  readonly client: ChatCompletionClient;
  /** The recording, a JSON Lines file that only its owner may read. Creates its directory. */
  readonly file: string;
  /** Append to an existing recording. Default: false; the first answer replaces it. */
  readonly append?: boolean | undefined;
}

const clientOptions: z.ZodType<RecordingChatCompletionClientOptions> = optionsSchema({
  client: modelClientOption,
  file: z.string().min(1),
  append: z.boolean().exactOptional(),
} satisfies OptionSchemas<RecordingChatCompletionClientOptions>);

const configSchema = z.strictObject({
  client: componentModelSchema,
  file: z.string().min(1),
  append: z.boolean().exactOptional(),
});

/**
 * Passes requests to another client and records them with their answers, for a `ReplayChatCompletionClient`.
 *
 * Each answer is on disk before the caller gets it, so a crash loses no delivered answer. Calls that fail or are
 * aborted, and streams that are left early, are not recorded. Overlapping calls are recorded in the order in which they
 * finish.
 *
 * The recording contains messages, tools, schemas and answers in full, which may be private. It contains only fields of
 * Fenced's own types, never keys or headers.
 *
 * @example
 * const client = new RecordingChatCompletionClient({ client: liveClient, file: "session.jsonl" });
 */
export class RecordingChatCompletionClient implements ChatCompletionClient {
  /** How `loadComponent` creates it. */
  static readonly component: Component<RecordingChatCompletionClient> = defineComponent({
    provider: "@fenced/model-replay:RecordingChatCompletionClient",
    componentType: "model",
    schema: configSchema,
    load: async ({ client, ...options }, context) =>
      new RecordingChatCompletionClient({ ...options, client: await context.load(client, "client") }),
  });

  readonly #options: RecordingChatCompletionClientOptions;
  readonly #writer: RecordWriter;

  /**
   * Writes nothing before the first answer.
   *
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(options: RecordingChatCompletionClientOptions) {
    const checked = checkOptions(clientOptions, options, "RecordingChatCompletionClient");
    this.#options = checked;
    this.#writer = new RecordWriter(checked.file, checked.append ?? false);
  }

  /** What the recorded model can do. */
  get modelInfo(): ModelInfo {
    return this.#options.client.modelInfo;
  }

  /** Tokens used by all calls of the recorded client so far. */
  get usage(): ModelUsage {
    return this.#options.client.usage;
  }

  /**
   * Asks the client and records its answer.
   *
   * @throws InvalidInputError if a message or an option is unknown or wrong.
   * @throws ModelClientError if the answer cannot be recorded; and whatever the client throws.
   */
  async create(messages: readonly ModelMessage[], options: CreateOptions = {}): Promise<CreateResult> {
    checkCreateArguments(messages, options, "RecordingChatCompletionClient");
    const request = toRecordedRequest(messages, options);
    const result = await this.#options.client.create(messages, options);
    await this.#record({ request, result });
    return result;
  }

  /**
   * Does the same as a stream, and also records the chunks.
   *
   * @throws as `create` does.
   */
  async *createStream(
    messages: readonly ModelMessage[],
    options: CreateOptions = {},
  ): AsyncGenerator<string | CreateResult, void, undefined> {
    checkCreateArguments(messages, options, "RecordingChatCompletionClient");
    const request = toRecordedRequest(messages, options);
    const chunks: string[] = [];
    for await (const item of this.#options.client.createStream(messages, options)) {
      if (typeof item === "string") chunks.push(item);
      else await this.#record({ request, chunks, result: item });
      yield item;
    }
  }

  /**
   * Returns the settings of this client and of the wrapped client, as plain JSON.
   *
   * @throws ComponentError if the wrapped client cannot be dumped.
   */
  dumpComponent(): ComponentModel {
    const { client, ...options } = this.#options;
    return RecordingChatCompletionClient.component.dump({ client: client.dumpComponent(), ...options });
  }

  async #record(answered: Pick<RecordEntry, "request" | "chunks" | "result">): Promise<void> {
    await this.#writer.write(toRecordEntry({ version: 1, modelInfo: this.modelInfo, ...answered }));
  }
}
