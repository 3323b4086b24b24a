import { setTimeout as sleep } from "node:timers/promises";
import {
  type ChatCompletionClient,
  type Component,
  type ComponentModel,
  type CreateOptions,
  type CreateResult,
  defineComponent,
  InvalidInputError,
  ModelClientError,
  type ModelInfo,
  type ModelMessage,
  type ModelUsage,
} from "@fenced/core";
import {
  checkCreateArguments,
  checkOptions,
  millisecondsOption,
  optionsSchema,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { describeDifference, describeLastMessage } from "./describe-request.ts";
import { readRecord } from "./read-record.ts";
import { modelInfoSchema, resultSchema, toRecordedRequest, type RecordEntry } from "./record-entry.ts";

/** Options of `ReplayChatCompletionClient`: a recording, or a list of answers. */
export interface ReplayChatCompletionClientOptions {
  /** The recording that a `RecordingChatCompletionClient` wrote. */
  readonly file?: string | undefined;
  /** For tests, instead of a recording: the answers in order, each a text or a whole result, for example with tool calls. */
  readonly answers?: readonly (string | CreateResult)[] | undefined;
  /** With `answers`: what the model can do. Default: vision, tools and structured output. */
  readonly modelInfo?: ModelInfo | undefined;
  /** Milliseconds to wait before each chunk of a stream, to watch a chat being written. Default: 0. */
  readonly chunkDelayMs?: number | undefined;
  /**
   * With `file`: throw if a request differs from the recorded one. Default: false; answers come in order, whatever the
   * request.
   */
  readonly strict?: boolean | undefined;
}

/** Checks the options, and the config in a component model. */
const clientOptions: z.ZodType<ReplayChatCompletionClientOptions> = optionsSchema({
  file: z.string().min(1).exactOptional(),
  answers: z.array(z.union([z.string(), resultSchema])).exactOptional(),
  modelInfo: modelInfoSchema.exactOptional(),
  chunkDelayMs: millisecondsOption.exactOptional(),
  strict: z.boolean().exactOptional(),
} satisfies OptionSchemas<ReplayChatCompletionClientOptions>);

/**
 * Replays a recording, or a list of answers: the first call gets the first answer, and so on. Nothing leaves this process.
 *
 * @example
 * const client = new ReplayChatCompletionClient({ file: "session.jsonl", strict: true });
 * const scripted = new ReplayChatCompletionClient({ answers: ["```python\nprint(6 * 7)\n```", "It is 42."] });
 */
export class ReplayChatCompletionClient implements ChatCompletionClient {
  /** How `loadComponent` creates it. */
  static readonly component: Component<ReplayChatCompletionClient> = defineComponent({
    provider: "@fenced/model-replay:ReplayChatCompletionClient",
    componentType: "model",
    schema: clientOptions,
    load: (options) => new ReplayChatCompletionClient(options),
  });

  /** What the recorded model can do. */
  readonly modelInfo: ModelInfo;

  readonly #options: ReplayChatCompletionClientOptions;
  readonly #entries: readonly Answer[];
  /** Where the answers come from, for error messages. */
  readonly #origin: string;
  #used = 0;
  #usage: ModelUsage = { promptTokens: 0, completionTokens: 0 };

  /**
   * Reads the recording.
   *
   * @throws FileNotFoundError if the file cannot be read.
   * @throws InvalidInputError if an option is unknown or wrong, if not exactly one of `file` and `answers` is set, or
   * if the file is empty or not a recording.
   */
  constructor(options: ReplayChatCompletionClientOptions) {
    const checked = checkOptions(clientOptions, options, "ReplayChatCompletionClient");
    this.#options = checked;
    const { entries, origin, modelInfo } = answersOf(checked);
    this.#entries = entries;
    this.#origin = origin;
    this.modelInfo = modelInfo;
  }

  /** Tokens that the replayed answers used when they were recorded. */
  get usage(): ModelUsage {
    return this.#usage;
  }

  /**
   * Returns the recording's next answer.
   *
   * @throws ModelClientError if the recording has no more answers, or, with `strict`, the request differs.
   * @throws InvalidInputError if a message or an option is unknown or wrong.
   * @throws `options.signal.reason` if the signal was aborted; the answer is then not used up.
   */
  async create(messages: readonly ModelMessage[], createOptions: CreateOptions = {}): Promise<CreateResult> {
    const options = checkCreateArguments(messages, createOptions, "ReplayChatCompletionClient");
    options.signal?.throwIfAborted();
    const { result } = this.#next(messages, options);
    this.#count(result);
    return Promise.resolve(result);
  }

  /**
   * Yields the recording's next answer in its recorded chunks. An answer that was not recorded as a stream comes in one
   * chunk.
   *
   * @throws as `create` does; an abort between two chunks uses the answer up.
   */
  async *createStream(
    messages: readonly ModelMessage[],
    createOptions: CreateOptions = {},
  ): AsyncGenerator<string | CreateResult, void, undefined> {
    const options = checkCreateArguments(messages, createOptions, "ReplayChatCompletionClient");
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

  /** Returns the client's settings as plain JSON, without the recording itself. */
  dumpComponent(): ComponentModel {
    return ReplayChatCompletionClient.component.dump({ ...this.#options });
  }

  #next(messages: readonly ModelMessage[], options: CreateOptions): Answer {
    const number = this.#used + 1;
    const entry = this.#entries[this.#used];
    const { strict = false } = this.#options;
    if (entry === undefined) {
      const has = this.#entries.length === 1 ? "1 answer" : `${this.#entries.length} answers`;
      throw new ModelClientError(
        `The ${this.#origin} has ${has}, but this is request ${number}. It ends with ${describeLastMessage(messages)}`,
        {
          remedy: `${this.#options.answers ? "Add an answer" : "Record the session again"}, or stop the conversation earlier.`,
        },
      );
    }
    const difference =
      strict && entry.request ? describeDifference(entry.request, toRecordedRequest(messages, options)) : undefined;
    if (difference !== undefined) {
      throw new ModelClientError(`Request ${number} differs from the ${this.#origin}: ${difference}`, {
        remedy: "Record the session again, or set strict to false if the difference does not matter.",
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

/** An answer, and how it was recorded. */
type Answer = Pick<RecordEntry, "result"> & Partial<RecordEntry>;

interface Answers {
  readonly entries: readonly Answer[];
  readonly origin: string;
  readonly modelInfo: ModelInfo;
}

const capableModel: ModelInfo = { family: "replay", vision: true, functionCalling: true, structuredOutput: true };

function answersOf({ file, answers, modelInfo, strict }: ReplayChatCompletionClientOptions): Answers {
  if ((file === undefined) === (answers === undefined)) {
    throw new InvalidInputError("ReplayChatCompletionClient needs either file or answers", {
      remedy: "Pass one of them: a recording, or a list of answers.",
    });
  }
  if (file === undefined) {
    if (strict === true) {
      throw new InvalidInputError("strict needs a recording: answers contain no requests to compare with", {
        remedy: "Remove strict, or replay a recording.",
      });
    }
    const entries = (answers ?? []).map((answer) => ({ result: typeof answer === "string" ? said(answer) : answer }));
    return { entries, origin: "list of answers", modelInfo: modelInfo ?? capableModel };
  }
  const entries = readRecord(file);
  const [first] = entries;
  if (first === undefined) {
    throw new InvalidInputError(`The recording ${file} is empty`, { remedy: "Record the session again." });
  }
  return { entries, origin: `recording ${file}`, modelInfo: modelInfo ?? first.modelInfo };
}

function said(content: string): CreateResult {
  return { content, finishReason: "stop", usage: { promptTokens: 0, completionTokens: 0 } };
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
