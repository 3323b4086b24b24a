import {
  type CodeBlock,
  type CodeResult,
  type ExecutorCapabilities,
  type JsonValue,
  languageAmong,
} from "@fenced/core";
import {
  beginOperation,
  captured,
  isWatched,
  watch,
  type HistogramDefinition,
  type Operation,
  type OperationDefinition,
  type TelemetryAttributes,
} from "@fenced/core/telemetry";
import type { FinishedBlock } from "../run/block-output.ts";
import type { RunEvents } from "../run/execution-stream.ts";
import { reportBlock, reportRun } from "./report-outcome.ts";
import { SubmittedRunTelemetry, type WatchedBlock } from "./submitted-run-telemetry.ts";

const scope = "@fenced/executor-kit";
const seconds: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

const lifeCycleDuration = durationOf(
  "fenced.executor.operation.duration",
  "How long an executor takes to start, restart, stop or set up functions",
);
const runDuration = durationOf(
  "fenced.run.duration",
  "How long a call's blocks take, including the wait for a turn and for the executor's start",
);
const blockDuration = durationOf("fenced.block.duration", "How long a code block takes");
const callDuration = durationOf(
  "fenced.host_call.duration",
  "How long a host function call takes, including the wait for approval",
);
function durationOf(name: string, description: string): HistogramDefinition {
  return { name, description, unit: "s", boundaries: seconds };
}

/** An executor's telemetry. `docs/telemetry.md` documents the names of spans, attributes and metrics. */
export class ExecutorTelemetry {
  readonly #executor: { readonly capabilities: ExecutorCapabilities };
  readonly #id: string;

  /** @param id - globally unique. */
  constructor(executor: { readonly capabilities: ExecutorCapabilities }, id: string) {
    this.#executor = executor;
    this.#id = id;
  }

  /** Watches what an executor does besides running blocks. */
  watchLifeCycle<T>(step: "start" | "restart" | "stop" | "set_up_functions", action: () => Promise<T>): Promise<T> {
    if (!isWatched(scope)) return action();
    return watch(
      {
        scope,
        name: `fenced.executor.${step}`,
        attributes: this.#self,
        duration: lifeCycleDuration,
        metricAttributes: { ...this.#kind, "fenced.executor.operation": step },
      },
      action,
    );
  }

  /**
   * Watches one call's blocks. A program that failed is a result: the call did not fail.
   *
   * @param events - what its consumer gets; `undefined` if there is none.
   * @param run - gets what watches its blocks; `undefined` if nobody would record that.
   */
  watchRun(
    blocks: readonly CodeBlock[],
    events: RunEvents | undefined,
    run: (telemetry: ExecutorTelemetry | undefined) => Promise<CodeResult>,
  ): Promise<CodeResult> {
    if (!isWatched(scope)) return run(undefined);
    const definition = this.#runOf(blocks);
    const isLeft = (): boolean => events?.left.aborted === true;
    return watchUntilLeft(
      definition,
      isLeft,
      () => run(this),
      (operation, result) => reportRun(operation, result),
    );
  }

  /**
   * Begins to watch a submitted run.
   *
   * @param left - an earlier program has submitted it; its last event so far. Default: this one does.
   * @returns `undefined` if nobody would record that.
   */
  beginRun(blocks: readonly CodeBlock[] | undefined, left?: number): SubmittedRunTelemetry | undefined {
    const operation = isWatched(scope) ? beginOperation(this.#runOf(blocks)) : undefined;
    if (!operation) return undefined;
    const begin = (block: CodeBlock, index: number, begunMsAgo?: number): WatchedBlock | undefined => {
      const definition = this.#blockOf(block, index);
      const begun = operation.within(() => beginOperation(definition, begunMsAgo));
      begun?.setContent(() => ({ "fenced.block.code": captured(block.code) }));
      return begun && { operation: begun, metricAttributes: definition.metricAttributes };
    };
    return new SubmittedRunTelemetry(operation, begin, left);
  }

  /** Watches one block. A program that failed or timed out counts as a failed operation. */
  watchBlock(
    block: CodeBlock & { readonly index: number },
    events: RunEvents | undefined,
    run: () => Promise<FinishedBlock>,
  ): Promise<FinishedBlock> {
    const definition = this.#blockOf(block, block.index);
    return watchUntilLeft(
      definition,
      // If the consumer leaves while it waits for the block, it aborts it.
      () => events?.left.aborted === true && !events.isAwaited,
      (operation) => {
        operation.setContent(() => ({ "fenced.block.code": captured(block.code) }));
        return run();
      },
      (operation, { result, displays, stateLost }) => {
        operation.set({ "fenced.state_lost": stateLost });
        reportBlock(operation, { result, displays: displays.length }, definition.metricAttributes);
      },
    );
  }

  /** Watches one call of a host function. The program chooses the name, so only the span contains it. */
  watchHostCall<T>(
    { callId, name }: { readonly callId: string; readonly name: string },
    input: JsonValue,
    action: () => Promise<T>,
  ): Promise<T> {
    if (!isWatched(scope)) return action();
    const attributes = { ...this.#self, "fenced.host_call.id": callId, "fenced.host_call.name": name };
    const definition = { scope, name: "fenced.host_call", attributes, duration: callDuration };
    return watch({ ...definition, metricAttributes: this.#kind }, (operation) => {
      operation.setContent(() => ({ "fenced.host_call.input": captured(JSON.stringify(input)) }));
      return action();
    });
  }

  #runOf(blocks: readonly CodeBlock[] | undefined): OperationDefinition {
    return {
      scope,
      name: "fenced.run",
      // What a caller passes may be anything.
      attributes: { ...this.#self, "fenced.run.blocks": Array.isArray(blocks) ? blocks.length : undefined },
      duration: runDuration,
      metricAttributes: this.#kind,
    };
  }

  #blockOf(
    { language: given }: CodeBlock,
    index: number,
  ): OperationDefinition & Required<Pick<OperationDefinition, "metricAttributes">> {
    const language = this.#languageOf(given);
    const metricAttributes = { ...this.#kind, "fenced.language": language };
    const attributes = { ...metricAttributes, "fenced.executor.id": this.#id, "fenced.block.index": index };
    return { scope, name: `fenced.block ${language}`, attributes, duration: blockDuration, metricAttributes };
  }

  /** For metrics: has only one value for each kind of executor. */
  get #kind(): TelemetryAttributes {
    return {
      "fenced.executor.name": this.#executor.constructor.name,
      "fenced.executor.isolation": this.#executor.capabilities.isolation,
    };
  }

  get #self(): TelemetryAttributes {
    return { ...this.#kind, "fenced.executor.id": this.#id };
  }

  /** A model may name any language, so only those that run here are reported. */
  #languageOf(given: string): string {
    const { languages } = this.#executor.capabilities;
    const name = languageAmong(given, languages);
    return languages.includes(name) ? name : "_OTHER";
  }
}

/** Watches something that a consumer can leave early, which is not a failure. */
function watchUntilLeft<T>(
  definition: OperationDefinition,
  isLeft: () => boolean,
  action: (operation: Operation) => Promise<T>,
  report: (operation: Operation, result: T) => void,
): Promise<T> {
  return watch(
    definition,
    async (operation) => {
      try {
        return await action(operation);
      } catch (error) {
        if (isLeft()) {
          operation.set({ "fenced.left_early": true });
          operation.end();
        }
        throw error;
      }
    },
    report,
  );
}
