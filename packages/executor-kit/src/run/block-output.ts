import {
  makeBlockResult,
  type BlockResult,
  type Display,
  type HostCallEvent,
  type NetworkDecision,
  type RunUsage,
} from "@fenced/core";
import { bundleSize } from "../output/bundle-size.ts";
import { OutputCollector, type StreamName } from "../output/output-collector.ts";
import type { BlockEvent, BlockOutcome } from "./block-run.ts";
import type { RunEvents } from "./execution-stream.ts";
import type { RunEnd } from "./run-end.ts";
import type { Sink } from "./sink.ts";

/** What a block's output is collected for. */
export interface OutputConditions {
  /** The block's position in the list of blocks. */
  readonly index: number;
  /** What ends the block before its end. */
  readonly end: Pick<RunEnd, "isRejected">;
  /** Gets the output as it comes. Default: nobody does, so that it need not be decoded and nothing waits. */
  readonly events?: RunEvents | undefined;
  /** Maximum size of the output that the block's result keeps, in bytes. */
  readonly maxOutputBytes: number;
  /** Room left in the run's result for the rich outputs of all its blocks. */
  readonly displayRoom: DisplayRoom;
  /** Learns of calls of host functions, also of a run that is aborted. Default: nobody does. */
  readonly hostCall?: ((event: HostCallEvent) => void) | undefined;
}

/**
 * How many more rich outputs, and how many bytes of them, a result can hold; changes as blocks show and clear outputs.
 */
export interface DisplayRoom {
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
  readonly reached?: readonly NetworkDecision[] | undefined;
  readonly usage?: RunUsage | undefined;
}

/** The exit code of a block that timed out, the same as that of coreutils' `timeout`. */
export const timedOutExitCode = 124;

/** Collects what a block outputs for its result, and passes it on to the consumer of the run's events. */
export class BlockOutput implements Sink<BlockEvent | HostCallEvent> {
  /** The block's own signal. */
  readonly signal: AbortSignal;
  readonly #conditions: OutputConditions;
  #collector: OutputCollector;
  readonly #displays: Display[] = [];
  #displaysLeftOut = false;
  #isOver = false;

  constructor(signal: AbortSignal, conditions: OutputConditions) {
    this.signal = signal;
    this.#conditions = conditions;
    this.#collector = new OutputCollector(conditions.maxOutputBytes);
  }

  write(event: BlockEvent | HostCallEvent): Promise<void> | undefined {
    const { index, events, end, maxOutputBytes, hostCall } = this.#conditions;
    if (hostCall && (event.type === "host-call" || event.type === "host-result")) hostCall(event);
    // Nobody gets the result of an aborted run.
    if (this.#isOver || end.isRejected) return undefined;
    switch (event.type) {
      case "stdout":
      case "stderr":
        return this.#tell(event.type, this.#collector.push(event.type, event.data));
      case "display":
        this.#keep(event.display, event.replaces);
        return events?.write({ type: "display", index, display: event.display });
      case "clear":
        this.#collector = new OutputCollector(maxOutputBytes);
        for (const display of this.#displays.splice(0)) this.#takeRoom(display, -1);
        this.#displaysLeftOut = false;
        return undefined;
      default:
        return events?.write({ ...event, index });
    }
  }

  /** Counts output that is missing. */
  skip(name: StreamName, bytes: number): void {
    this.#collector.skip(name, bytes);
  }

  /** Call this when the block has ended; whatever is written afterwards is dropped. */
  finish(outcome: BlockOutcome, timedOut: boolean, durationMs: number): FinishedBlock {
    for (const name of ["stdout", "stderr"] as const) void this.#tell(name, this.#collector.end(name));
    this.#isOver = true;
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
      reached: outcome.reached,
      usage: outcome.usage,
    };
  }

  #tell(type: StreamName, pieces: readonly Buffer[]): Promise<void> | undefined {
    const { index, events } = this.#conditions;
    if (!events || pieces.length === 0) return undefined;
    return events.write({ type, index, text: pieces.map((piece) => piece.toString()).join("") });
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
}
