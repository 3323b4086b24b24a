import { createHash, randomUUID } from "node:crypto";
import * as z from "zod";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { RunNotFoundError } from "../errors/run-not-found-error.ts";
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
  /** Those of them that have ended, in that order. */
  readonly #ended = new Set<Submission>();
  /** What was submitted under ids whose runs are no longer kept. */
  readonly #forgotten = new Map<string, string>();

  constructor(settings: SubmittedRunsSettings) {
    this.#settings = settings;
  }

  /** See `CodeExecutor.submit`. */
  submit(blocks: readonly CodeBlock[], options: SubmitOptions = {}): SubmittedRun {
    const { id = randomUUID(), ...checked } = checkOptions(submitOptions, options, "submit");
    checkExecuteArguments(blocks, {});
    const content = digest(blocks, checked);
    const known = this.#runs.get(id);
    // What failed before a block began has done nothing.
    if (known && (known.state !== "failed" || known.hasBegun)) {
      if (known.content !== content) throw otherCode(id);
      return known;
    }
    const forgotten = this.#forgotten.get(id);
    if (forgotten === content) throw new InvalidInputError(...noLongerKept(id));
    if (forgotten !== undefined) throw otherCode(id);
    const { stream, sizeOf = sizeOfEvent } = this.#settings;
    const cancelling = new AbortController();
    const events = stream(blocks, { ...checked, signal: cancelling.signal });
    const run = new Submission({ id, content, cancelling, events, sizeOf });
    if (known) this.#forget(known);
    this.#runs.set(id, run);
    void run.ended.then(() => this.#end(run));
    return run;
  }

  /** See `CodeExecutor.run`. */
  run(id: string): SubmittedRun {
    const run = this.#runs.get(id);
    if (run) return run;
    if (this.#forgotten.has(id)) throw new RunNotFoundError(...noLongerKept(id));
    throw new RunNotFoundError(`There is no run ${JSON.stringify(id)}`, {
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

  /** Forgets the runs that ended first, but not the one that ended last. */
  #end(last: Submission): void {
    // A run that was submitted again has taken its place.
    if (this.#runs.get(last.id) === last) this.#ended.add(last);
    let size = [...this.#ended].reduce((sum, run) => sum + run.size, 0);
    for (const run of this.#ended) {
      if (run === last || (this.#ended.size <= mostEnded && size <= mostEndedBytes)) break;
      size -= run.size;
      this.#forget(run);
      this.#forgotten.set(run.id, run.content);
    }
    for (const id of this.#forgotten.keys()) {
      if (this.#forgotten.size <= mostForgotten) break;
      this.#forgotten.delete(id);
    }
  }

  #forget(run: Submission): void {
    this.#ended.delete(run);
    this.#runs.delete(run.id);
  }
}

interface SubmissionParts {
  readonly id: string;
  /** Identifies the code. */
  readonly content: string;
  /** Ends the run. */
  readonly cancelling: AbortController;
  readonly events: AsyncIterable<ExecutionEvent>;
  readonly sizeOf: (event: ExecutionEvent) => number;
}

/** A submitted run. */
class Submission implements SubmittedRun {
  readonly id: string;
  readonly uuid: string = randomUUID();
  readonly content: string;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  readonly #sizeOf: SubmissionParts["sizeOf"];
  readonly #log: RunLog;
  readonly #cancelling: AbortController;
  readonly #result: Promise<CodeResult>;
  #state: SubmittedRun["state"] = "running";
  #hasBegun = false;
  #resultSize = 0;

  constructor({ id, content, cancelling, events, sizeOf }: SubmissionParts) {
    this.id = id;
    this.content = content;
    this.#sizeOf = sizeOf;
    this.#log = new RunLog(mostEventBytes, sizeOf);
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

  get lastSeq(): number {
    return this.#log.lastSeq;
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
        this.#resultSize = this.#sizeOfResult(event.result);
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

  #sizeOfResult({ blocks, displays }: CodeResult): number {
    const text = blocks.reduce((sum, { output }) => sum + output.length, 1024);
    return displays.reduce((sum, display) => sum + this.#sizeOf({ type: "display", index: 0, display }), text);
  }
}

function otherCode(id: string): InvalidInputError {
  return new InvalidInputError(`The run ${JSON.stringify(id)} was submitted with other code, input or variables`, {
    remedy: "Choose a new id for each run, and submit the same blocks only to get the same run again.",
  });
}

function noLongerKept(id: string): [message: string, options: { readonly remedy: string }] {
  const remedy = `Read results before ${mostEnded} later runs have ended, or submit the code under a new id.`;
  return [`The run ${JSON.stringify(id)} has ended, and its result is no longer kept`, { remedy }];
}

/** Identifies a run by what it would do. */
function digest(blocks: readonly CodeBlock[], { stdin, env = {} }: SubmitOptions): string {
  const code = blocks.map((block) => [block.language, block.code]);
  const variables = Object.entries(env).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([code, stdin ?? null, variables]))
    .digest("base64");
}

function sizeOfEvent(event: ExecutionEvent): number {
  if ("text" in event) return 128 + event.text.length;
  if (event.type !== "display") return 128;
  return Object.values(event.display.data).reduce<number>((sum, content) => {
    if (typeof content === "string" || content instanceof Uint8Array) return sum + content.length;
    return sum + JSON.stringify(content).length;
  }, 128);
}
