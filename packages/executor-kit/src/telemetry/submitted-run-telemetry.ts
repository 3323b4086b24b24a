import type { CodeBlock, RunEvent } from "@fenced/core";
import type { OpenOperation, TelemetryAttributes } from "@fenced/core/telemetry";
import { reportBlock, reportRun } from "./report-outcome.ts";

/** A block that is being watched. */
export interface WatchedBlock {
  readonly operation: OpenOperation;
  readonly metricAttributes: TelemetryAttributes;
}

/** @param begunMsAgo - when it began, in milliseconds before now. Default: now. */
type BeginBlock = (block: CodeBlock, index: number, begunMsAgo?: number) => WatchedBlock | undefined;

/**
 * Watches a submitted run by its events. One that goes on in its place is watched by each program that follows it: its
 * span ends there with the run, or with the program's part of it, but only where the run ends is its duration recorded.
 */
export class SubmittedRunTelemetry {
  readonly #operation: OpenOperation;
  readonly #begin: BeginBlock;
  /** The last event that an earlier program may have seen. */
  readonly #left: number;
  /** The block that runs now; without an operation if it began before this program came. */
  #block: (Partial<WatchedBlock> & { readonly code: CodeBlock }) | undefined;
  #displays = 0;

  constructor(operation: OpenOperation, begin: BeginBlock, left = 0) {
    this.#operation = operation;
    this.#begin = begin;
    this.#left = left;
  }

  /** Runs `action` with the run's span as the active one. */
  within<T>(action: () => T): T {
    return this.#operation.within(action);
  }

  /**
   * A block begins, with this event.
   *
   * @returns a function that runs its argument with the block's span as the active one.
   */
  begin(code: CodeBlock, index: number, seq: number): <T>(action: () => T) => T {
    this.#displays = 0;
    const begun = seq > this.#left ? this.#begin(code, index) : undefined;
    this.#block = { code, ...begun };
    const { operation } = begun ?? { operation: this.#operation };
    return (action) => operation.within(action);
  }

  /** Takes an event of a run that goes on in its place, whose blocks were announced by `begin`. */
  follow({ seq, event }: RunEvent): void {
    if (event.type === "display") this.#displays += 1;
    if (event.type === "block-end") this.#endBlock(event, seq);
    if (event.type === "result") this.end(event, this.#left > 0);
  }

  /** @param isLate - the run began before it was watched. */
  end({ result }: Extract<RunEvent["event"], { readonly type: "result" }>, isLate = false): void {
    reportRun(this.#operation, result);
    this.#operation.end(isLate ? result.durationMs : undefined);
  }

  fail(error: unknown): void {
    for (const operation of [this.#block?.operation, this.#operation]) {
      operation?.fail(error);
      operation?.end();
    }
  }

  /** The run goes on, but this program no longer follows it. */
  leave(): void {
    for (const operation of [this.#block?.operation, this.#operation]) operation?.leaveOff();
  }

  #endBlock({ index, result }: Extract<RunEvent["event"], { readonly type: "block-end" }>, seq: number): void {
    const block = this.#block;
    this.#block = undefined;
    // The program that followed the run then has recorded it.
    if (!block || seq <= this.#left) return;
    const { operation, metricAttributes = {} } = block.operation
      ? block
      : (this.#begin(block.code, index, result.durationMs) ?? {});
    if (!operation) return;
    reportBlock(operation, { result, displays: this.#displays }, metricAttributes);
    operation.end(result.durationMs);
  }
}
