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

/** Tells a run from others. */
export interface RunIdentity {
  readonly id: string;
  /** See `SubmittedRun`. */
  readonly uuid: string;
  /** A digest of what it does. */
  readonly content: string;
}

/** A run that begins. */
export interface BeginningRun extends RunIdentity {
  /** Call this once it goes on without this program, if it does before its first event. */
  readonly begun: () => void;
  /** Call this while it waits for other runs. */
  readonly waits: () => void;
}

/** A run that an earlier program has submitted. */
export interface LeftRun extends RunIdentity, Pick<SubmittedRun, "state" | "lastSeq"> {
  /**
   * Yields its events from the beginning, then live, and ends after the result; throws the run's error. Called at once
   * for a run that has not ended, and for others when they are first read.
   *
   * @param signal - cancels the run.
   */
  readonly read: (signal: AbortSignal) => AsyncIterable<RunEvent>;
}

/** What an executor gives its submitted runs. */
export interface SubmittedRunsSettings {
  /**
   * The executor's `streamCodeBlocks`. Events with a position keep it; then all of them must have one.
   */
  readonly stream: (
    blocks: readonly CodeBlock[],
    options: ExecuteOptions,
    run: BeginningRun,
  ) => AsyncIterable<ExecutionEvent | RunEvent>;
  /** The size of an event in memory, in bytes. Default: that of its text and its rich output. */
  readonly sizeOf?: ((event: ExecutionEvent) => number) | undefined;
}

/** A run, from its submission on. */
export interface RunningSubmission extends SubmittedRun {
  /** Resolves once the run has begun, waits for others, goes on without this program, or has ended. */
  readonly taken: Promise<void>;
}

/**
 * The submitted runs of an executor, which implement its `submit`, `run` and `runs`. They go on as long as this program
 * and the executor do, unless `stream` hands them on to something else.
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
  submit(blocks: readonly CodeBlock[], options: SubmitOptions = {}): RunningSubmission {
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
    const identity = { id, content, uuid: randomUUID() };
    const cancelling = new AbortController();
    const progress = { begun: () => run.begun(), waits: () => run.take() };
    const events = stream(blocks, { ...checked, signal: cancelling.signal }, { ...identity, ...progress });
    const run = new Submission({ ...identity, cancelling, sizeOf, read: () => events });
    if (known) this.#forget(known);
    this.#add(run);
    void run.begin();
    return run;
  }

  /**
   * Adds runs that an earlier program has submitted, in order of their submission.
   *
   * @param forgotten - the content of other runs, by id, whose events are no longer kept.
   */
  adopt(runs: readonly LeftRun[], forgotten: ReadonlyMap<string, string>): void {
    for (const [id, content] of forgotten) if (!this.#runs.has(id)) this.#forgotten.set(id, content);
    const { sizeOf = sizeOfEvent } = this.#settings;
    for (const left of runs) {
      if (this.#runs.get(left.id)?.uuid === left.uuid) continue;
      const cancelling = new AbortController();
      const run = new Submission({ ...left, cancelling, sizeOf, read: () => left.read(cancelling.signal) });
      this.#add(run);
      if (left.state === "running") void run.begin();
    }
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

  #add(run: Submission): void {
    this.#runs.set(run.id, run);
    void run.ended.then(() => this.#end(run));
  }

  #forget(run: Submission): void {
    this.#ended.delete(run);
    this.#runs.delete(run.id);
  }
}

interface SubmissionParts extends RunIdentity, Partial<Pick<LeftRun, "state" | "lastSeq">> {
  /** Ends the run. */
  readonly cancelling: AbortController;
  /** Begins the run, or begins to read it. */
  readonly read: () => AsyncIterable<ExecutionEvent | RunEvent>;
  readonly sizeOf: (event: ExecutionEvent) => number;
}

/** A submitted run. */
class Submission implements RunningSubmission {
  readonly id: string;
  readonly uuid: string;
  readonly content: string;
  /** Resolves when it has ended, and its events are here. */
  readonly ended: Promise<void>;
  readonly taken: Promise<void>;
  readonly #sizeOf: SubmissionParts["sizeOf"];
  readonly #log: RunLog;
  readonly #cancelling: AbortController;
  readonly #read: SubmissionParts["read"];
  /** The position of the last event of a run of an earlier program, before its events are here. */
  readonly #leftSeq: number;
  #result: Promise<CodeResult> | undefined;
  #state: SubmittedRun["state"];
  #hasBegun: boolean;
  #resultSize = 0;
  #end: () => void = () => {};
  /** Resolves `taken`. */
  take: () => void = () => {};

  constructor({ id, uuid, content, state, lastSeq = 0, cancelling, read, sizeOf }: SubmissionParts) {
    this.id = id;
    this.uuid = uuid;
    this.content = content;
    this.#cancelling = cancelling;
    this.#state = state ?? "running";
    this.#leftSeq = lastSeq;
    this.#hasBegun = state !== undefined;
    this.#sizeOf = sizeOf;
    this.#log = new RunLog(mostEventBytes, sizeOf);
    this.#read = read;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.taken = new Promise((resolve) => {
      this.take = resolve;
    });
    if (this.#hasBegun) this.take();
  }

  get state(): SubmittedRun["state"] {
    return this.#state;
  }

  get lastSeq(): number {
    return Math.max(this.#log.lastSeq, this.#leftSeq);
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
    void this.begin();
    yield* this.#log.read(after, signal);
  }

  result(): Promise<CodeResult> {
    return this.begin();
  }

  async cancel(): Promise<void> {
    if (this.state !== "running") return;
    this.#cancelling.abort(new DOMException("The run was cancelled", "AbortError"));
    await this.ended;
  }

  /** Begins the run, or the reading of one that has ended, once. */
  begin(): Promise<CodeResult> {
    if (this.#result) return this.#result;
    const result = this.#collect();
    this.#result = result;
    const end = (): void => {
      this.take();
      this.#end();
    };
    result.then(end, end);
    return result;
  }

  /** Call this when its id can no longer be used for another attempt. */
  begun(): void {
    this.#hasBegun = true;
    this.take();
  }

  async #collect(): Promise<CodeResult> {
    try {
      for await (const each of this.#read()) {
        this.begun();
        const event = "seq" in each ? each.event : each;
        if ("seq" in each) this.#log.addNumbered(each);
        else this.#log.add(each);
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
