import {
  BackendUnavailableError,
  type CodeBlock,
  type ExecuteOptions,
  FencedError,
  FileNotFoundError,
  InvalidInputError,
  WorkspacePathError,
} from "@fenced/core";
import type { ExecutorFunctions } from "../functions/executor-functions.ts";
import { type HostChoice, nothingChosen } from "../host-calls/host-calls.ts";
import { type Place, PlaceGone } from "../place.ts";
import { isDiskFull } from "../workspace/workspace-errors.ts";
import { BlockOutput, type FinishedBlock, type OutputConditions } from "./block-output.ts";
import type { BlockOutcome, BlockRun } from "./block-run.ts";
import { guardWorkspace } from "./guard-workspace.ts";
import { filenameNotInWorkspace, prepareBlock } from "./prepare-block.ts";
import type { RunEnd } from "./run-end.ts";

/** How many places a block may lose before it begins. */
export const mostPlaces = 5;

/** Where an executor's blocks run, and what it gives all of them. */
export interface BlockPlace {
  /** Returns the place for the next block, in which the call's functions are set up. */
  readonly find: (signal: AbortSignal) => Place | Promise<Place>;
  /**
   * Called if a place was gone before a block began, which then runs in the next one. Default: the block throws
   * `PlaceGone`.
   */
  readonly giveUp?: (place: Place, reason: string) => void;
  /** Canonical names of the languages that the executor offers. */
  readonly offered: readonly string[];
  /** The executor's environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly functions: ExecutorFunctions;
  readonly maxWorkspaceBytes: number | undefined;
  /** Counts something as running in the session until it settles. */
  readonly begin: (running: Promise<unknown>) => void;
}

/** The conditions under which a block runs. */
export interface BlockConditions
  extends OutputConditions, Pick<ExecuteOptions, "env" | "stdin">, Pick<BlockRun, "setup"> {
  readonly end: RunEnd;
  /** Time limit of the block in milliseconds, or the rest of the call's time if that is less. */
  readonly timeoutMs: number;
  /** The host functions that it can call. Default: none. */
  readonly host?: HostChoice;
  /** Learns how a block ended that has no result because its run was aborted, if that is known. Default: nobody does. */
  readonly cutOff?: ((outcome: BlockOutcome) => void) | undefined;
}

/**
 * Runs one block within its limits and collects its output.
 *
 * @throws the reason of `conditions.end`, once everything that the block started is dead.
 */
export async function runBlock(
  block: CodeBlock,
  place: BlockPlace,
  conditions: BlockConditions,
): Promise<FinishedBlock> {
  const started = performance.now();
  const { end } = conditions;
  let timedOutAt = Infinity;
  const lift = end.after(conditions.timeoutMs, () => {
    timedOutAt = performance.now();
  });
  const output = new BlockOutput(end.signal, conditions);
  const running = start(block, place, conditions, output);
  place.begin(running);
  let outcome: BlockOutcome;
  try {
    outcome = await running;
  } catch (error) {
    end.throwIfRejected();
    outcome = { exitCode: 1 };
    if (!output.signal.aborted) void output.write({ type: "stderr", data: `${refusal(error)}\n` });
  } finally {
    lift();
  }
  if (end.isRejected) conditions.cutOff?.(outcome);
  end.throwIfRejected();
  const endedAt = outcome.endedAt ?? performance.now();
  return output.finish(outcome, endedAt >= timedOutAt, endedAt - started);
}

async function start(
  block: CodeBlock,
  given: BlockPlace,
  conditions: BlockConditions,
  output: BlockOutput,
): Promise<BlockOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    const place = await given.find(output.signal);
    try {
      const outcome = await runIn(place, block, { given, conditions, output });
      // Blocks that run at the same time all lose the same state.
      return attempt === 1 ? outcome : { ...outcome, stateLost: true };
    } catch (error) {
      if (!(error instanceof PlaceGone) || !given.giveUp) throw error;
      given.giveUp(place, error.message);
      if (attempt === mostPlaces) throw keepsEnding(error);
    }
  }
}

/** A block, and what it runs with. */
interface BlockParts {
  readonly given: BlockPlace;
  readonly conditions: BlockConditions;
  readonly output: BlockOutput;
}

async function runIn(place: Place, block: CodeBlock, { given, conditions, output }: BlockParts): Promise<BlockOutcome> {
  const { workspacePath, missing, capabilities } = place.facts;
  const languages = capabilities?.languages ?? given.offered;
  const prepared = prepareBlock(block, { languages, missing, workspacePath });
  if ("problem" in prepared) {
    void output.write({ type: "stderr", data: `${prepared.problem}\n` });
    return { exitCode: 1 };
  }
  const { index, host = nothingChosen } = conditions;
  const runWith = (env?: Readonly<Record<string, string>>): Promise<BlockOutcome> => {
    const run = blockRun(prepared, {
      ...conditions,
      env: { ...given.env, ...conditions.env, ...env },
    });
    const { maxWorkspaceBytes } = given;
    if (maxWorkspaceBytes === undefined) return place.run(run, output);
    return guardWorkspace(place, maxWorkspaceBytes, output, (sink) => place.run(run, sink));
  };
  if (host.functions.size === 0) return runWith();
  return given.functions.run(host, { index, sink: output }, runWith);
}

/** A block as places run it. */
export function blockRun(
  prepared: Pick<BlockRun, "language" | "code" | "filename">,
  { env = {}, timeoutMs, stdin, setup, host = nothingChosen }: Omit<BlockConditions, keyof OutputConditions | "end">,
): BlockRun {
  const hostCalls = host.variant === undefined ? {} : { variant: host.variant };
  return {
    ...prepared,
    env,
    timeoutMs,
    ...(stdin !== undefined && { stdin }),
    ...(setup && { setup }),
    ...(host.functions.size > 0 && { hostCalls }),
  };
}

/** The error for a block that no place has begun. */
export function keepsEnding(cause: PlaceGone): BackendUnavailableError {
  return new BackendUnavailableError(`The block did not begin, in ${mostPlaces} places: ${cause.message}`, {
    remedy: "Find out what ends them: the backend's logs, a limit on memory, or its configuration.",
    cause,
  });
}

/** The sentence for a block whose file name cannot be used; rethrows any other error. */
export function refusal(error: unknown): string {
  if (WorkspacePathError.isInstance(error)) return filenameNotInWorkspace;
  if (FileNotFoundError.isInstance(error) || InvalidInputError.isInstance(error)) return error.message;
  // Code can make room, so this is no reason to give the session up.
  if (FencedError.isInstance(error) && isDiskFull(error)) return error.message;
  throw error;
}
