import { createHash, randomUUID } from "node:crypto";
import * as z from "zod";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { CodeBlock } from "../execution/code-block.ts";
import type { CodeResult } from "../execution/code-result.ts";
import type { ExecuteOptions } from "../execution/execute-options.ts";
import type { ExecutionEvent } from "../execution/execution-event.ts";
import {
  checkExecuteArguments,
  checkOptions,
  executeOptionSchemas,
  optionsSchema,
  type OptionSchemas,
  signalOption,
  wholeNumberOption,
} from "../options/check-options.ts";
import { RunLog } from "./run-log.ts";
import type { RunEvent, RunEventsOptions, SubmitOptions, SubmittedRun } from "./submitted-run.ts";

/** The size of the events that are kept of each run, in bytes. */
const mostEventBytes = 1_048_576;
/** How many ended runs are kept, and the size of their events and results together in bytes. */
const [mostEnded, mostEndedBytes] = [100, 268_435_456];
/** How many ids of runs that are no longer kept are remembered. */
const mostForgotten = 10_000;
const longestId = 512;

const { signal: _, ...executeOptions } = executeOptionSchemas;

const submitOptions: z.ZodType<SubmitOptions> = optionsSchema({
  ...executeOptions,
  id: z
    .string()
    .min(1, "must not be empty")
    .max(longestId, `must have at most ${longestId} characters`)
    .exactOptional(),
} satisfies OptionSchemas<SubmitOptions>);

const eventsOptions: z.ZodType<RunEventsOptions> = optionsSchema({
  after: wholeNumberOption({ from: 0 }).exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<RunEventsOptions>);

/** What an executor gives its submitted runs. */
export interface SubmittedRunsSettings {
  /** The executor's `streamCodeBlocks`. */
  readonly stream: (blocks: readonly CodeBlock[], options: ExecuteOptions) => AsyncIterable<ExecutionEvent>;
  /** The size of an event in memory, in bytes. Default: that of its text and its rich output. */
  readonly sizeOf?: ((event: ExecutionEvent) => number) | undefined;
}

/**
 * The submitted runs of an executor, which implement its `submit`, `run` and `runs`. They go on as long as this program
 * and the executor do.
 */
export class SubmittedRuns {
  readonly #settings: SubmittedRunsSettings;
  /** In order of their submission. */
  readonly #runs = new Map<string, Submission>();
  /** What was submitted under ids whose runs are no longer kept. */
  readonly #forgotten = new Map<string, string>();

  constructor(settings: SubmittedRunsSettings) {
    this.#settings = settings;
  }

  /** See `CodeExecutor.submit`. */
  submit(blocks: readonly CodeBlock[], options: SubmitOptions = {}): SubmittedRun {
    const { id = randomUUID(), ...checked } = checkOptions(submitOptions, options, "submit");
    checkExecuteArguments(blocks, {});
    const content = digest(blocks);
    const known = this.#runs.get(id);
    if ((known?.content ?? this.#forgotten.get(id) ?? content) !== content) {
      throw new InvalidInputError(`The run ${JSON.stringify(id)} was submitted with other code`, {
        remedy: "Choose a new id for each run, and submit the same blocks only to get the same run again.",
      });
    }
    if (known) return known;
    if (this.#forgotten.has(id)) throw noLongerKept(id);
    const { stream, sizeOf = sizeOfEvent } = this.#settings;
    const cancelling = new AbortController();
    const events = stream(blocks, { ...checked, signal: cancelling.signal });
    const run = new Submission({ id, content, cancelling, events, log: new RunLog(mostEventBytes, sizeOf) });
    this.#runs.set(id, run);
    void run.ended.then(() => this.#ended(run));
    return run;
  }

  /** See `CodeExecutor.run`. */
  run(id: string): SubmittedRun {
    const run = this.#runs.get(id);
    if (run) return run;
    if (this.#forgotten.has(id)) throw noLongerKept(id);
    throw new InvalidInputError(`There is no run ${JSON.stringify(id)}`, {
      remedy: "`runs()` lists those that were submitted to this executor.",
    });
  }

  /** See `CodeExecutor.runs`. */
  runs(): SubmittedRun[] {
    return [...this.#runs.values()];
  }

  /** True while a run has not ended. */
  get isRunning(): boolean {
    return [...this.#runs.values()].some(({ state }) => state === "running");
  }

  /** Forgets the oldest runs that have ended, but not the last one; and one that never began, which may be submitted again. */
  #ended(last: Submission): void {
    if (!last.hasBegun) this.#runs.delete(last.id);
    const ended = [...this.#runs.values()].filter(({ state }) => state !== "running");
    let size = ended.reduce((sum, run) => sum + run.size, 0);
    let count = ended.length;
    for (const run of ended.slice(0, -1)) {
      if (count <= mostEnded && size <= mostEndedBytes) break;
      count -= 1;
      size -= run.size;
      this.#runs.delete(run.id);
      this.#forgotten.set(run.id, run.content);
    }
    for (const id of this.#forgotten.keys()) {
      if (this.#forgotten.size <= mostForgotten) break;
      this.#forgotten.delete(id);
    }
  }
}

interface SubmissionParts {
  readonly id: string;
  /** Identifies the code. */
  readonly content: string;
  /** Ends the run. */
  readonly cancelling: AbortController;
  readonly events: AsyncIterable<ExecutionEvent>;
  readonly log: RunLog;
}

/** A submitted run. */
class Submission implements SubmittedRun {
  readonly id: string;
  readonly content: string;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  readonly #log: RunLog;
  readonly #cancelling: AbortController;
  readonly #result: Promise<CodeResult>;
  #state: SubmittedRun["state"] = "running";
  #hasBegun = false;
  #resultSize = 0;

  constructor({ id, content, cancelling, events, log }: SubmissionParts) {
    this.id = id;
    this.content = content;
    this.#log = log;
    this.#cancelling = cancelling;
    this.#result = this.#collect(events);
    this.ended = this.#result.then(
      () => {},
      () => {},
    );
  }

  get state(): SubmittedRun["state"] {
    return this.#state;
  }

  /** True once a block has begun. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** What the run takes in memory, in bytes. */
  get size(): number {
    return this.#log.size + this.#resultSize;
  }

  async *events(options: RunEventsOptions = {}): AsyncGenerator<RunEvent, void, void> {
    const { after = 0, signal } = checkOptions(eventsOptions, options, "events");
    yield* this.#log.read(after, signal);
  }

  result(): Promise<CodeResult> {
    return this.#result;
  }

  async cancel(): Promise<void> {
    this.#cancelling.abort(new DOMException("The run was cancelled", "AbortError"));
    await this.ended;
  }

  async #collect(events: AsyncIterable<ExecutionEvent>): Promise<CodeResult> {
    try {
      for await (const event of events) {
        this.#hasBegun = true;
        this.#log.add(event);
        if (event.type !== "result") continue;
        this.#resultSize = resultSize(event.result);
        this.#state = "finished";
        this.#log.end();
        return event.result;
      }
      throw new TypeError(
        "The executor's stream ended without a result. This is a bug in the executor: report it to its authors.",
      );
    } catch (error) {
      this.#state = "failed";
      this.#log.end({ error });
      throw error;
    }
  }
}

function noLongerKept(id: string): InvalidInputError {
  return new InvalidInputError(`The run ${JSON.stringify(id)} has ended, and its result is no longer kept`, {
    remedy: `Read results before ${mostEnded} later runs have ended, or submit the code under a new id.`,
  });
}

/** Identifies blocks by what they would run. */
function digest(blocks: readonly CodeBlock[]): string {
  const parts = blocks.map(({ language, code }) => [language, code]);
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64");
}

/** What a result takes in memory besides its rich outputs, which the events have, too, in bytes. */
function resultSize({ blocks }: CodeResult): number {
  return blocks.reduce((sum, { output }) => sum + output.length, 1024);
}

function sizeOfEvent(event: ExecutionEvent): number {
  if ("text" in event) return 128 + event.text.length;
  if (event.type !== "display") return 128;
  return Object.values(event.display.data).reduce<number>((sum, content) => {
    if (typeof content === "string" || content instanceof Uint8Array) return sum + content.length;
    return sum + JSON.stringify(content).length;
  }, 128);
}
