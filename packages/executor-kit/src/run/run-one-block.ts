import { setImmediate as turn } from "node:timers/promises";
import {
  FencedError,
  FileNotFoundError,
  InvalidInputError,
  makeBlockResult,
  WorkspacePathError,
  type BlockResult,
  type Display,
  type ExecutionEvent,
  type HostCallEvent,
  type NetworkDecision,
} from "@fenced/core";
import { afterMs, followSignals } from "@fenced/core/abort";
import { inThisContext } from "@fenced/core/telemetry";
import { bundleSize } from "../output/bundle-size.ts";
import { OutputCollector, type StreamName } from "../output/output-collector.ts";
import { isDiskFull } from "../workspace/pinned-directory.ts";
import { timeIsUp, type BlockEvent, type BlockOutcome } from "./block-run.ts";

/** The conditions under which a block runs. */
export interface BlockConditions {
  /** The block's position in the list of blocks. */
  readonly index: number;
  /** Ends the block and the run. */
  readonly signal: AbortSignal;
  /** Whether the consumer wants text as it arrives; decoding it takes time. */
  readonly texts: boolean;
  /** Time limit of the block in milliseconds, or the rest of the call's time if that is less. */
  readonly timeoutMs: number;
  /** Maximum size of the output that the block's result keeps, in bytes. */
  readonly maxOutputBytes: number;
  /** Room left in the run's result for the rich outputs of all its blocks. */
  readonly displayRoom: DisplayRoom;
  /** Counts the block as running in its session until `ended` resolves. */
  readonly begin: (ended: Promise<void>) => void;
}

/**
 * How many more rich outputs, and how many bytes of them, a result can hold; changes as blocks show and clear outputs.
 */
interface DisplayRoom {
  count: number;
  bytes: number;
}

/** One block's result, and what only the run as a whole reports. */
export interface FinishedBlock {
  readonly result: BlockResult;
  /** Bytes of its output that the result keeps. */
  readonly keptBytes: number;
  readonly displays: readonly Display[];
  readonly codeFile?: string;
  readonly stateLost: boolean;
  readonly network: readonly NetworkDecision[];
}

/** The message for a block that names a file outside the workspace. */
export const filenameNotInWorkspace = "Filename is not in the workspace";

/** The exit code of a block that timed out, the same as that of coreutils' `timeout`. */
export const timedOutExitCode = 124;

/**
 * Runs one block within its limits and collects its output.
 *
 * @param start - starts it with the given signal.
 * @throws the reason of `conditions.signal`, once everything that the block started is dead.
 */
export async function* runOneBlock(
  start: (signal: AbortSignal) => AsyncGenerator<BlockEvent | HostCallEvent, BlockOutcome, void>,
  conditions: BlockConditions,
): AsyncGenerator<ExecutionEvent, FinishedBlock, void> {
  const started = performance.now();
  const output = new BlockOutput(conditions);
  const ending = new AbortController();
  let timedOutAt = Infinity;
  const unfollow = followSignals(ending, [conditions.signal]);
  const cancel = afterMs(conditions.timeoutMs, () => {
    if (!ending.signal.aborted) timedOutAt = performance.now();
    ending.abort(timeIsUp);
  });
  const events = new BlockEvents(start(ending.signal), conditions.signal);
  conditions.begin(events.ended);
  let outcome: BlockOutcome | undefined;
  try {
    while (!outcome) {
      const step = await events.next();
      conditions.signal.throwIfAborted();
      if (step.done === true) outcome = step.value;
      else yield* output.take(step.value);
    }
  } catch (error) {
    conditions.signal.throwIfAborted();
    outcome = { exitCode: 1 };
    if (!ending.signal.aborted) yield* output.take({ type: "stderr", data: `${refusal(error)}\n` });
  } finally {
    if (!outcome) {
      ending.abort();
      await events.abandon();
    }
    cancel();
    unfollow();
  }
  conditions.signal.throwIfAborted();
  yield* output.end();
  const endedAt = outcome.endedAt ?? performance.now();
  return output.result(outcome, endedAt >= timedOutAt, endedAt - started);
}

/** The sentence for a block whose file name cannot be used; rethrows any other error. */
function refusal(error: unknown): string {
  if (WorkspacePathError.isInstance(error)) return filenameNotInWorkspace;
  if (FileNotFoundError.isInstance(error) || InvalidInputError.isInstance(error)) return error.message;
  // Code can make room, so this is no reason to give the session up.
  if (FencedError.isInstance(error) && isDiskFull(error)) return error.message;
  throw error;
}

/** A block's output so far. */
class BlockOutput {
  readonly #conditions: BlockConditions;
  #collector: OutputCollector;
  readonly #displays: Display[] = [];
  #displaysLeftOut = false;

  constructor(conditions: BlockConditions) {
    this.#conditions = conditions;
    this.#collector = new OutputCollector(conditions.maxOutputBytes);
  }

  *take(event: BlockEvent | HostCallEvent): Generator<ExecutionEvent, void, void> {
    const { index, maxOutputBytes } = this.#conditions;
    if (event.type === "clear") {
      this.#collector = new OutputCollector(maxOutputBytes);
      for (const display of this.#displays.splice(0)) this.#takeRoom(display, -1);
      this.#displaysLeftOut = false;
    } else if (event.type === "display") {
      this.#keep(event.display, event.replaces);
      yield { type: "display", index, display: event.display };
    } else if (event.type === "host-call" || event.type === "host-result") {
      yield { ...event, index };
    } else {
      yield* this.#text(event.type, this.#collector.push(event.type, event.data));
    }
  }

  *end(): Generator<ExecutionEvent, void, void> {
    for (const name of ["stdout", "stderr"] as const) yield* this.#text(name, this.#collector.end(name));
  }

  result(outcome: BlockOutcome, timedOut: boolean, durationMs: number): FinishedBlock {
    const { truncated, keptBytes, ...text } = this.#collector.text();
    return {
      result: makeBlockResult({
        exitCode: timedOut ? timedOutExitCode : outcome.exitCode,
        ...text,
        durationMs,
        timedOut,
        truncated: truncated || this.#displaysLeftOut || outcome.truncated === true,
      }),
      keptBytes,
      displays: this.#displays,
      ...(outcome.codeFile === undefined ? {} : { codeFile: outcome.codeFile }),
      stateLost: outcome.stateLost === true,
      network: outcome.network ?? [],
    };
  }

  #keep(display: Display, replaces: Display | undefined): void {
    const place = replaces === undefined ? -1 : this.#displays.indexOf(replaces);
    const [replaced] = place === -1 ? [] : this.#displays.splice(place, 1);
    if (replaced) this.#takeRoom(replaced, -1);
    const { count, bytes } = this.#conditions.displayRoom;
    if (count > 0 && bundleSize(display.data) <= bytes) {
      this.#takeRoom(display, 1);
      this.#displays.splice(replaced ? place : this.#displays.length, 0, display);
    } else {
      this.#displaysLeftOut = true;
    }
  }

  #takeRoom({ data }: Display, times: 1 | -1): void {
    const { displayRoom } = this.#conditions;
    displayRoom.count -= times;
    displayRoom.bytes -= times * bundleSize(data);
  }

  *#text(type: StreamName, pieces: readonly Buffer[]): Generator<ExecutionEvent, void, void> {
    const { index, texts } = this.#conditions;
    if (!texts || pieces.length === 0) return;
    yield { type, index, text: pieces.map((piece) => piece.toString()).join("") };
  }
}

/**
 * Passes on a block's events one by one. Once the run is aborted, it stops waiting for its consumer, so that the block
 * ends even if nobody reads, and drops what still arrives.
 */
class BlockEvents {
  /** Resolves when everything that the block started has ended. */
  readonly ended: Promise<void>;
  readonly #events: AsyncGenerator<BlockEvent | HostCallEvent, BlockOutcome, void>;
  readonly #signal: AbortSignal;
  readonly #goAhead: () => void = inThisContext(() => {
    this.#ahead ??= this.#runAhead();
    // Seen by `next`, if anything still asks for it.
    this.#ahead.catch(() => {});
  });
  #pulled: Promise<IteratorResult<BlockEvent | HostCallEvent, BlockOutcome>> | undefined;
  #ahead: Promise<BlockOutcome> | undefined;
  #end: () => void = () => {};

  /** @param signal - the run's. */
  constructor(events: AsyncGenerator<BlockEvent | HostCallEvent, BlockOutcome, void>, signal: AbortSignal) {
    this.#events = events;
    this.#signal = signal;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    if (signal.aborted) this.#goAhead();
    else signal.addEventListener("abort", this.#goAhead, { once: true });
  }

  /** Returns the next event, or the outcome. Call it only after the previous event has been used. */
  async next(): Promise<IteratorResult<BlockEvent | HostCallEvent, BlockOutcome>> {
    if (!this.#ahead) return (this.#pulled = this.#pull());
    return { done: true, value: await this.#ahead };
  }

  /** Ends a block whose signal has been aborted but whose events were not read to the end. */
  async abandon(): Promise<void> {
    this.#goAhead();
    await this.ended;
  }

  async #pull(): Promise<IteratorResult<BlockEvent | HostCallEvent, BlockOutcome>> {
    try {
      const step = await this.#events.next();
      if (step.done === true) this.#finish();
      return step;
    } catch (error) {
      this.#finish();
      throw error;
    }
  }

  async #runAhead(): Promise<BlockOutcome> {
    // Let a consumer that waits for an event, or has just received one, use it first, since the next one may reuse its
    // memory.
    await this.#pulled?.catch(() => {});
    await turn();
    for (;;) {
      const step = await this.#pull();
      if (step.done === true) return step.value;
    }
  }

  #finish(): void {
    this.#signal.removeEventListener("abort", this.#goAhead);
    this.#end();
  }
}
