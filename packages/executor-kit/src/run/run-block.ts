import {
  type CodeBlock,
  type ExecuteOptions,
  FencedError,
  FileNotFoundError,
  InvalidInputError,
  WorkspacePathError,
} from "@fenced/core";
import type { BackendSession } from "../backend-session.ts";
import type { ExecutorFunctions } from "../functions/executor-functions.ts";
import { type HostChoice, nothingChosen } from "../host-calls/host-calls.ts";
import { isDiskFull } from "../workspace/workspace-errors.ts";
import { BlockOutput, type FinishedBlock, type OutputConditions } from "./block-output.ts";
import type { BlockOutcome, BlockRun } from "./block-run.ts";
import { guardWorkspace } from "./guard-workspace.ts";
import { filenameNotInWorkspace, prepareBlock } from "./prepare-block.ts";
import type { RunEnd } from "./run-end.ts";

/** Where an executor's blocks run, and what it gives all of them. */
export interface BlockPlace {
  readonly session: BackendSession;
  /** Canonical names of the languages that can run. */
  readonly languages: readonly string[];
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
  end.throwIfRejected();
  const endedAt = outcome.endedAt ?? performance.now();
  return output.finish(outcome, endedAt >= timedOutAt, endedAt - started);
}

async function start(
  block: CodeBlock,
  { session, languages, functions, ...place }: BlockPlace,
  conditions: BlockConditions,
  output: BlockOutput,
): Promise<BlockOutcome> {
  const { workspacePath, missing } = session.facts;
  const prepared = prepareBlock(block, { languages, missing, workspacePath });
  if ("problem" in prepared) {
    void output.write({ type: "stderr", data: `${prepared.problem}\n` });
    return { exitCode: 1 };
  }
  const { index, timeoutMs, stdin, setup, host = nothingChosen } = conditions;
  const hostCalls = host.variant === undefined ? {} : { variant: host.variant };
  return functions.run(host, { index, sink: output }, (env) => {
    const run: BlockRun = {
      ...prepared,
      env: { ...place.env, ...conditions.env, ...env },
      timeoutMs,
      ...(stdin !== undefined && { stdin }),
      ...(setup && { setup }),
      ...(host.functions.size > 0 && { hostCalls }),
    };
    return guardWorkspace(session, place.maxWorkspaceBytes, output, (sink) => session.run(run, sink));
  });
}

/** The sentence for a block whose file name cannot be used; rethrows any other error. */
function refusal(error: unknown): string {
  if (WorkspacePathError.isInstance(error)) return filenameNotInWorkspace;
  if (FileNotFoundError.isInstance(error) || InvalidInputError.isInstance(error)) return error.message;
  // Code can make room, so this is no reason to give the session up.
  if (FencedError.isInstance(error) && isDiskFull(error)) return error.message;
  throw error;
}
