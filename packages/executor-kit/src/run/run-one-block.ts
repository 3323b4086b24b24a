import {
  FileNotFoundError,
  InvalidInputError,
  WorkspacePathError,
  type Display,
  type ExecutionEvent,
} from "@fenced/core";
import type { StreamName } from "../output/arrival-order.ts";
import { OutputCollector } from "../output/output-collector.ts";
import { filenameNotInWorkspace } from "../workspace/filename-directive.ts";
import { followSignals } from "./abort.ts";
import type { FinishedBlock } from "./aggregate-result.ts";
import { BlockEvents } from "./block-events.ts";
import { timeIsUp, type BlockEvent, type BlockOutcome } from "./block-run.ts";
import { timerDelay } from "./validate-run.ts";

/** Under which conditions a block runs. */
export interface BlockConditions {
  /** The block's place in the list of blocks. */
  readonly index: number;
  /** Ends the block, and the run with it. */
  readonly signal: AbortSignal;
  /** Whether the consumer wants text as it comes; decoding it costs time. */
  readonly texts: boolean;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** Counts the block in with its session; the function that it returns counts it out, once it has ended. */
  readonly begin: () => () => void;
}

/** The exit code of a block whose time was up, as coreutils' `timeout` has it. */
const timedOutExitCode = 124;

/**
 * Runs one block within its limits and collects what it puts out.
 *
 * @param start - starts it under the signal given.
 * @throws the reason of `conditions.signal`, once everything that the block started is dead.
 */
export async function* runOneBlock(
  start: (signal: AbortSignal) => AsyncGenerator<BlockEvent, BlockOutcome, void>,
  conditions: BlockConditions,
): AsyncGenerator<ExecutionEvent, FinishedBlock, void> {
  const started = performance.now();
  const output = new BlockOutput(conditions);
  const limits = new BlockLimits(conditions);
  const events = new BlockEvents(start(limits.signal), conditions.signal);
  void events.ended.then(conditions.begin());
  let outcome: BlockOutcome | undefined;
  try {
    while (!outcome) {
      const step = await events.next();
      if (step.done === true) outcome = step.value;
      else yield* output.take(step.value);
    }
  } catch (error) {
    outcome = { exitCode: 1 };
    if (!limits.signal.aborted) yield* output.take({ type: "stderr", data: `${refusal(error)}\n` });
  } finally {
    if (!outcome) {
      limits.abort();
      await events.abandon();
    }
    limits.lift();
  }
  conditions.signal.throwIfAborted();
  yield* output.end();
  const endedAt = outcome.endedAt ?? performance.now();
  return output.result(outcome, endedAt >= limits.timedOutAt, endedAt - started);
}

/** The sentence for a block whose file name cannot be used; any other error is thrown on. */
function refusal(error: unknown): string {
  if (WorkspacePathError.isInstance(error)) return filenameNotInWorkspace;
  if (FileNotFoundError.isInstance(error) || InvalidInputError.isInstance(error)) return error.message;
  throw error;
}

/** The signal under which a block runs: aborted when its time is up or its run is. */
class BlockLimits {
  readonly #controller = new AbortController();
  readonly #unfollow: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #timedOutAt = Infinity;

  constructor({ signal, timeoutMs }: BlockConditions) {
    this.#unfollow = followSignals(this.#controller, [signal]);
    const delay = timerDelay(timeoutMs);
    if (delay !== undefined) this.#timer = setTimeout(() => this.#timeOut(), delay);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** On the clock of `performance.now()`; `Infinity` if time was not up. */
  get timedOutAt(): number {
    return this.#timedOutAt;
  }

  abort(): void {
    this.#controller.abort();
  }

  lift(): void {
    clearTimeout(this.#timer);
    this.#unfollow();
  }

  #timeOut(): void {
    if (!this.signal.aborted) this.#timedOutAt = performance.now();
    this.#controller.abort(timeIsUp);
  }
}

/** What a block put out so far. */
class BlockOutput {
  readonly #index: number;
  readonly #texts: boolean;
  readonly #maxOutputBytes: number;
  #collector: OutputCollector;
  #displays: Display[] = [];

  constructor({ index, texts, maxOutputBytes }: BlockConditions) {
    this.#index = index;
    this.#texts = texts;
    this.#maxOutputBytes = maxOutputBytes;
    this.#collector = new OutputCollector(maxOutputBytes);
  }

  *take(event: BlockEvent): Generator<ExecutionEvent, void, void> {
    if (event.type === "clear") {
      this.#collector = new OutputCollector(this.#maxOutputBytes);
      this.#displays = [];
    } else if (event.type === "display") {
      this.#keep(event.display, event.replaces);
      yield { type: "display", index: this.#index, display: event.display };
    } else {
      yield* this.#text(event.type, this.#collector.push(event.type, event.data));
    }
  }

  *end(): Generator<ExecutionEvent, void, void> {
    for (const name of ["stdout", "stderr"] as const) yield* this.#text(name, this.#collector.end(name));
  }

  result(outcome: BlockOutcome, timedOut: boolean, durationMs: number): FinishedBlock {
    const { truncated, ...texts } = this.#collector.texts();
    return {
      result: {
        exitCode: timedOut ? timedOutExitCode : outcome.exitCode,
        ...texts,
        durationMs,
        timedOut,
        truncated: truncated || outcome.truncated === true,
      },
      displays: this.#displays,
      ...(outcome.codeFile === undefined ? {} : { codeFile: outcome.codeFile }),
      stateLost: outcome.stateLost === true,
    };
  }

  #keep(display: Display, replaces: Display | undefined): void {
    const place = replaces === undefined ? -1 : this.#displays.indexOf(replaces);
    if (place === -1) this.#displays.push(display);
    else this.#displays[place] = display;
  }

  *#text(type: StreamName, pieces: readonly Buffer[]): Generator<ExecutionEvent, void, void> {
    if (!this.#texts || pieces.length === 0) return;
    yield { type, index: this.#index, text: pieces.map((piece) => piece.toString()).join("") };
  }
}
