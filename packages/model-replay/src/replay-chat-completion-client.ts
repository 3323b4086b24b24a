import { setTimeout as sleep } from "node:timers/promises";
import {
  InvalidInputError,
  ModelClientError,
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
import { describeDifference, describeLastMessage } from "./describe-request.ts";
import { readRecord } from "./read-record.ts";
import { toRecordedRequest, type RecordEntry } from "./record-entry.ts";

/** What a `ReplayChatCompletionClient` is made from. */
export interface ReplayChatCompletionClientOptions {
  /** The record, as a `RecordingChatCompletionClient` wrote it. */
  readonly file: string;
  /** Milliseconds before each chunk of a stream, for a show. Default: 0. */
  readonly chunkDelayMs?: number;
  /** Every request must equal the recorded one. Default: false, answers come in order whatever is asked. */
  readonly strict?: boolean;
}

const configSchema = z.strictObject({
  file: z.string().min(1),
  chunkDelayMs: z.number().nonnegative().exactOptional(),
  strict: z.boolean().exactOptional(),
});

/**
 * Answers from a record, in its order: the first call gets the first answer, and so on. Nothing is sent anywhere.
 *
 * @example
 * const client = new ReplayChatCompletionClient({ file: "session.jsonl", strict: true });
 */
export class ReplayChatCompletionClient implements ChatCompletionClient {
  /** The `componentType` in dumped models. */
  static readonly componentType = "model";
  /** The version of the dumped config's shape. */
  static readonly componentVersion = 1;

  /** What the recorded model can do. */
  readonly modelInfo: ModelInfo;

  readonly #options: ReplayChatCompletionClientOptions;
  readonly #entries: readonly RecordEntry[];
  #used = 0;
  #usage: ModelUsage = { promptTokens: 0, completionTokens: 0 };

  /**
   * Reads the record.
   *
   * @throws FileNotFoundError if the file is not there.
   * @throws InvalidInputError if it is no record, or an empty one.
   */
  constructor(options: ReplayChatCompletionClientOptions) {
    this.#options = options;
    this.#entries = readRecord(options.file);
    const [first] = this.#entries;
    if (first === undefined) {
      throw new InvalidInputError(`The record ${options.file} is empty`, { remedy: "Record the session again." });
    }
    this.modelInfo = first.modelInfo;
  }

  /** What the answers took, by the record, that were replayed so far. */
  get usage(): ModelUsage {
    return this.#usage;
  }

  /**
   * Makes a client from a dumped config.
   *
   * @throws ComponentError if the config has another shape; and what the constructor throws.
   */
  static fromConfig(config: JsonObject, context: ComponentContext): ReplayChatCompletionClient {
    return new ReplayChatCompletionClient(parseComponentConfig(configSchema, config, context.provider));
  }

  /**
   * The record's next answer, whole.
   *
   * @throws ModelClientError if the record has no more answers, or, with `strict`, another request.
   * @throws `options.signal.reason` if the signal was aborted; no answer is used up then.
   */
  async create(messages: readonly ModelMessage[], options: CreateOptions = {}): Promise<CreateResult> {
    options.signal?.throwIfAborted();
    const { result } = this.#next(messages, options);
    this.#count(result);
    return Promise.resolve(result);
  }

  /**
   * The record's next answer in its recorded chunks. An answer that was not recorded as a stream comes as one chunk.
   *
   * @throws as `create` does; an abort between two chunks uses the answer up.
   */
  async *createStream(
    messages: readonly ModelMessage[],
    options: CreateOptions = {},
  ): AsyncGenerator<string | CreateResult, void, undefined> {
    const { signal } = options;
    signal?.throwIfAborted();
    const { chunks, result } = this.#next(messages, options);
    for (const chunk of chunks ?? wholeText(result)) {
      await pause(this.#options.chunkDelayMs ?? 0, signal);
      yield chunk;
    }
    signal?.throwIfAborted();
    this.#count(result);
    yield result;
  }

  /** The client's settings as plain JSON. The record itself stays where it is. */
  dumpComponent(): ComponentModel {
    return {
      provider: "@fenced/model-replay:ReplayChatCompletionClient",
      componentType: "model",
      version: 1,
      config: { ...this.#options },
    };
  }

  #next(messages: readonly ModelMessage[], options: CreateOptions): RecordEntry {
    const number = this.#used + 1;
    const entry = this.#entries[this.#used];
    const { file, strict = false } = this.#options;
    if (entry === undefined) {
      const has = this.#entries.length === 1 ? "1 answer" : `${this.#entries.length} answers`;
      throw new ModelClientError(
        `Request ${number} is beyond the record ${file}, which has ${has}. It ends with ${describeLastMessage(messages)}`,
        { remedy: "Record the session again, or stop the conversation earlier." },
      );
    }
    const difference = strict ? describeDifference(entry.request, toRecordedRequest(messages, options)) : undefined;
    if (difference !== undefined) {
      throw new ModelClientError(`Request ${number} is not the one in ${file}: ${difference}`, {
        remedy: "Record the session again, or leave strict out if the difference does not matter.",
      });
    }
    this.#used = number;
    return entry;
  }

  #count({ usage }: CreateResult): void {
    this.#usage = {
      promptTokens: this.#usage.promptTokens + usage.promptTokens,
      completionTokens: this.#usage.completionTokens + usage.completionTokens,
    };
  }
}

function wholeText({ content }: CreateResult): string[] {
  return typeof content === "string" && content !== "" ? [content] : [];
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  if (milliseconds === 0) return;
  try {
    await sleep(milliseconds, undefined, signal && { signal });
  } catch {
    // The timer rejects with an AbortError of its own.
    signal?.throwIfAborted();
  }
}
