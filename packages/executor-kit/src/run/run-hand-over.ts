import { randomBytes, randomUUID } from "node:crypto";
import type {
  BeginningRun,
  CodeBlock,
  CodeResult,
  ExecuteOptions,
  ExecutionEvent,
  ExecutorCapabilities,
  RunEvent,
} from "@fenced/core";
import type { ExecutorFunctions } from "../functions/executor-functions.ts";
import type { HostChoice } from "../host-calls/host-calls.ts";
import type { LossReports } from "../loss-reports.ts";
import type { Place, RunSubmission } from "../place.ts";
import type { Epoch } from "../session-life.ts";
import type { SubmittedRunTelemetry } from "../telemetry/submitted-run-telemetry.ts";
import type { KeptRuns } from "./kept-runs.ts";
import { prepareBlock, validateRun } from "./prepare-block.ts";
import { type BlockConditions, blockRun } from "./run-block.ts";
import { combineResults } from "./run-result.ts";
import { Run } from "./run.ts";

/** What a run has from its executor. */
interface RunHandOverSettings<P extends Place> {
  readonly functions: ExecutorFunctions;
  readonly losses: LossReports;
  readonly keptRuns: KeptRuns;
  readonly timeoutMs: number;
  readonly totalTimeoutMs: number;
  readonly maxOutputBytes: number;
  readonly maxWorkspaceBytes: number | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** What the executor is designed to do. */
  readonly offered: () => ExecutorCapabilities;
  /** What it can do now. */
  readonly capabilities: () => ExecutorCapabilities;
  readonly open: () => Epoch<P>;
  /** Returns the place, with the functions of a call. */
  readonly findPlace: (epoch: Epoch<P>, host: HostChoice, signal: AbortSignal) => Promise<P>;
}

/** A submitted run that begins. */
interface WatchedBeginning extends BeginningRun {
  readonly watched: SubmittedRunTelemetry | undefined;
}

/** Hands submitted runs on to places that go on with them by themselves. */
export class RunHandOver<P extends Place> {
  readonly #settings: RunHandOverSettings<P>;

  constructor(settings: RunHandOverSettings<P>) {
    this.#settings = settings;
  }

  /** Returns the run's events; `undefined` if the place cannot go on with it by itself. */
  async handOn(
    blocks: readonly CodeBlock[],
    options: ExecuteOptions,
    { begun, waits, watched, ...identity }: WatchedBeginning,
  ): Promise<AsyncGenerator<ExecutionEvent | RunEvent, void, void> | undefined> {
    const { functions: known, losses, findPlace, offered, capabilities, maxWorkspaceBytes } = this.#settings;
    const { stdin: takesStdin, stateful } = capabilities();
    validateRun(blocks, options, takesStdin);
    const host = known.choose(options.functions, offered());
    const { timeoutMs = this.#settings.timeoutMs, env, stdin, signal } = options;
    const { totalTimeoutMs = this.#settings.totalTimeoutMs } = options;
    const epoch = this.#settings.open();
    const started = performance.now();
    const run = new Run({ signals: [epoch.signal, signal], totalTimeoutMs, events: undefined });
    let endTurn: (() => void) | undefined;
    let isHandedOn = false;
    try {
      // What is set up in an interpreter has its turn there.
      const needsTurn = stateful && (known.any(host) || epoch.usablePlace === undefined);
      const place = await run.prepare(async (limit) => {
        if (needsTurn && !epoch.turns.isFree) waits();
        if (needsTurn) endTurn = await epoch.turns.take(limit);
        return findPlace(epoch, host, limit);
      });
      if (!place) return onlyResult(combineResults([], { complete: false, durationMs: 0, lost: losses.take() }));
      const { runs } = place;
      if (!runs) return undefined;
      const what = this.#blocksFor(place, blocks, { env, stdin, timeoutMs, host });
      const submitting = runs.submit({
        identity,
        ...what,
        maxWorkspaceBytes,
        waits: stateful,
        totalTimeoutMs: Math.max(0, totalTimeoutMs - (performance.now() - started)),
        timeoutMs,
        signal: epoch.signal,
      });
      const number = await submitting.catch((error: unknown) => {
        losses.putBack(what.record.lost === true);
        throw error;
      });
      isHandedOn = true;
      begun();
      const turn = endTurn ?? (stateful ? epoch.turns.take(epoch.signal) : undefined);
      const { functions } = host;
      return this.#settings.keptRuns.follow({ id: identity.id, runs, number, epoch, turn, functions, watched }, signal);
    } finally {
      // A set-up goes on without its caller, in the interpreter of the next call.
      if (endTurn && !isHandedOn) void epoch.functionsSettled.then(endTurn);
      run.settle();
    }
  }

  /** The blocks of a run as a place works through them, and what those who read it need to know. */
  #blocksFor(
    { facts: { missing, workspacePath } }: P,
    blocks: readonly CodeBlock[],
    conditions: Pick<BlockConditions, "env" | "stdin" | "timeoutMs"> & { readonly host: HostChoice },
  ): Pick<RunSubmission, "blocks" | "record" | "tokens"> {
    const { capabilities, functions: known, env, losses, maxOutputBytes } = this.#settings;
    const { languages } = capabilities();
    const { functions } = conditions.host;
    const hasCalls = functions.size > 0;
    const tokens = blocks.map(() => `${randomUUID()}.${randomBytes(32).toString("hex")}`);
    return {
      blocks: blocks.map((block, index) => {
        const prepared = prepareBlock(block, { languages, missing, workspacePath });
        if ("problem" in prepared) return prepared;
        const variables = hasCalls ? known.variables(tokens[index] ?? "") : {};
        return blockRun(prepared, { ...conditions, env: { ...env, ...conditions.env, ...variables } });
      }),
      record: {
        blocks,
        maxOutputBytes,
        ...(losses.take() && { lost: true }),
        ...(hasCalls && { hostFunctions: [...functions.keys()] }),
      },
      ...(hasCalls && { tokens }),
    };
  }
}

/** The events of a run whose time was up before its first block. */
async function* onlyResult(result: CodeResult): AsyncGenerator<ExecutionEvent, void, void> {
  yield { type: "result", result };
}
