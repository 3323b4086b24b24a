import {
  type CodeBlock,
  type CodeResult,
  type ExecutorCapabilities,
  type JsonValue,
  languageAmong,
} from "@fenced/core";
import {
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
const blockOutput: HistogramDefinition = {
  name: "fenced.block.output.size",
  description: "How much of a code block's output the result keeps",
  unit: "By",
  boundaries: [0, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304],
};

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
    const definition = {
      scope,
      name: "fenced.run",
      attributes: { ...this.#self, "fenced.run.blocks": Array.isArray(blocks) ? blocks.length : 0 },
      duration: runDuration,
      metricAttributes: this.#kind,
    };
    const isLeft = (): boolean => events?.left.aborted === true;
    return watchUntilLeft(
      definition,
      isLeft,
      () => run(this),
      (operation, result) => operation.set({ ...outcome(result), "fenced.state_lost": result.stateLost }),
    );
  }

  /** Watches one block. A program that failed or timed out counts as a failed operation. */
  watchBlock(
    { language: given, code, index }: CodeBlock & { readonly index: number },
    events: RunEvents | undefined,
    run: () => Promise<FinishedBlock>,
  ): Promise<FinishedBlock> {
    const language = this.#languageOf(given);
    const metricAttributes = { ...this.#kind, "fenced.language": language };
    const attributes = { ...metricAttributes, "fenced.executor.id": this.#id, "fenced.block.index": index };
    const name = `fenced.block ${language}`;
    return watchUntilLeft(
      { scope, name, attributes, duration: blockDuration, metricAttributes },
      // If the consumer leaves while it waits for the block, it aborts it.
      () => events?.left.aborted === true && !events.isAwaited,
      (operation) => {
        operation.setContent(() => ({ "fenced.block.code": captured(code) }));
        return run();
      },
      (operation, finished) => reportBlock(operation, finished, metricAttributes),
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

function reportBlock(
  operation: Operation,
  { result, displays, stateLost }: FinishedBlock,
  metricAttributes: TelemetryAttributes,
): void {
  const bytes = Buffer.byteLength(result.output);
  operation.record(blockOutput, bytes, metricAttributes);
  operation.set({
    ...outcome(result),
    "fenced.state_lost": stateLost,
    "fenced.block.output.size": bytes,
    "fenced.block.displays": displays.length,
  });
  operation.setContent(() => ({ "fenced.block.output": captured(result.output) }));
  if (result.timedOut) operation.failAs("timeout");
  else if (result.exitCode !== 0) operation.failAs("program_failed");
}

function outcome({
  exitCode,
  timedOut,
  truncated,
}: Pick<CodeResult, "exitCode" | "timedOut" | "truncated">): TelemetryAttributes {
  return { "fenced.exit_code": exitCode, "fenced.timed_out": timedOut, "fenced.truncated": truncated };
}
