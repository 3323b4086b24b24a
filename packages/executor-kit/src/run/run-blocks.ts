import {
  type CodeBlock,
  type CodeResult,
  type ExecuteOptions,
  type ExecutionEvent,
  type HostCallEvent,
  InvalidInputError,
  languageAmong,
  makeCodeResult,
  type NetworkDecision,
  WorkspacePathError,
} from "@fenced/core";
import { afterMs, followSignals } from "@fenced/core/abort";
import { checkExecuteArguments } from "@fenced/core/options";
import type { ExecutorTelemetry } from "../telemetry/executor-telemetry.ts";
import { normalizeWorkspacePath, refuseHome, relativeToWorkspace } from "../workspace/workspace-path.ts";
import { type BlockEvent, type BlockOutcome, timeIsUp } from "./block-run.ts";
import {
  type BlockConditions,
  type FinishedBlock,
  filenameNotInWorkspace,
  runOneBlock,
  timedOutExitCode,
} from "./run-one-block.ts";

/** Maximum number of refusals of the network policy that a result keeps. */
const mostRefusals = 50;
/** Limits on the rich outputs of one result: their number and their bytes. */
const [mostDisplays, mostDisplayBytes] = [10_000, 268_435_456];

/** The conditions under which blocks run. */
interface RunConditions extends Pick<BlockConditions, "texts" | "timeoutMs" | "maxOutputBytes" | "begin"> {
  readonly limits: RunLimits;
  readonly telemetry: ExecutorTelemetry;
  /** Starts a block with the given signal. */
  readonly start: (
    block: CodeBlock,
    signal: AbortSignal,
    index: number,
  ) => AsyncGenerator<BlockEvent | HostCallEvent, BlockOutcome, void>;
  /** Returns whether the session was lost since the last result, and resets that because it is then reported. */
  readonly takeLoss: () => boolean;
}

/**
 * What ends a call: its signals, which make it reject, and its time limit, which makes it resolve with the results so
 * far.
 */
export class RunLimits {
  /** When the call's time is up, as a `performance.now()` time; `Infinity`: never. */
  readonly deadline: number;
  /** Ends the block and the call, which rejects with its reason. */
  readonly signal: AbortSignal;
  readonly lift: () => void;

  constructor(signals: readonly (AbortSignal | undefined)[], totalTimeoutMs: number) {
    const rejecting = new AbortController();
    this.signal = rejecting.signal;
    this.deadline = performance.now() + totalTimeoutMs;
    this.lift = followSignals(rejecting, signals);
  }

  /**
   * Waits for what a call needs before its blocks.
   *
   * @param prepare - must reject with the signal's reason once it is aborted.
   * @returns `undefined` if the call's time is up first.
   * @throws the signals' reason if one is aborted first.
   */
  async untilTimeIsUp<T>(prepare: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const waiting = new AbortController();
    const unfollow = followSignals(waiting, [this.signal]);
    const cancel = afterMs(this.deadline - performance.now(), () => waiting.abort(timeIsUp));
    try {
      return await prepare(waiting.signal);
    } catch (error) {
      if (error === timeIsUp) return undefined;
      throw error;
    } finally {
      cancel();
      unfollow();
    }
  }
}

/** Runs blocks one after another, up to the first that fails, or until the call's time is up. */
export async function* runBlocks(
  blocks: readonly CodeBlock[],
  conditions: RunConditions,
): AsyncGenerator<ExecutionEvent, CodeResult, void> {
  const { start, telemetry, limits } = conditions;
  const started = performance.now();
  const finished: FinishedBlock[] = [];
  const displayRoom = { count: mostDisplays, bytes: mostDisplayBytes };
  let maxOutputBytes = conditions.maxOutputBytes;
  for (const [index, block] of blocks.entries()) {
    limits.signal.throwIfAborted();
    if (performance.now() >= limits.deadline) break;
    yield { type: "block-start", index, block };
    limits.signal.throwIfAborted();
    const timeoutMs = Math.min(conditions.timeoutMs, limits.deadline - performance.now());
    const { texts, begin } = conditions;
    const limited = { index, signal: limits.signal, texts, timeoutMs, maxOutputBytes, displayRoom, begin };
    const end = yield* telemetry.watchBlock({ ...block, index }, () =>
      runOneBlock((limit) => start(block, limit, index), limited),
    );
    finished.push(end);
    maxOutputBytes -= end.keptBytes;
    yield { type: "block-end", index, result: end.result };
    if (end.result.exitCode !== 0) break;
  }
  limits.signal.throwIfAborted();
  return aggregateResult(finished, {
    complete: finished.length === blocks.length,
    durationMs: performance.now() - started,
    lost: conditions.takeLoss(),
  });
}

/**
 * Combines the blocks' results into that of the run. A run whose blocks all succeeded timed out if it did not get
 * through all of them.
 */
export function aggregateResult(
  finished: readonly FinishedBlock[],
  { complete, durationMs, lost }: { readonly complete: boolean; readonly durationMs: number; readonly lost: boolean },
): CodeResult {
  const blocks = finished.map((block) => block.result);
  const codeFile = finished[0]?.codeFile;
  const exitCode = blocks.at(-1)?.exitCode ?? 0;
  const timeWasUp = exitCode === 0 && !complete;
  const refused = finished.flatMap((block) => block.network);
  return makeCodeResult({
    exitCode: timeWasUp ? timedOutExitCode : exitCode,
    displays: finished.flatMap((block) => block.displays),
    ...(codeFile === undefined ? {} : { codeFile }),
    timedOut: timeWasUp || blocks.some((block) => block.timedOut),
    truncated: blocks.some((block) => block.truncated),
    stateLost: lost || finished.some((block) => block.stateLost),
    ...(refused.length === 0 ? {} : { network: distinctRefusals(refused) }),
    durationMs,
    blocks,
  });
}

/** The first refusals, as many as a result keeps; repeated attempts count once. */
export function distinctRefusals(decisions: readonly NetworkDecision[]): readonly NetworkDecision[] {
  const isSame = (one: NetworkDecision, other: NetworkDecision): boolean =>
    one.host === other.host && one.port === other.port && one.reason === other.reason;
  return decisions
    .filter((decision, index) => decisions.findIndex((other) => isSame(other, decision)) === index)
    .slice(0, mostRefusals);
}

/** @throws InvalidInputError if there is nothing to run, or an option is unknown or wrong. */
export function validateRun(blocks: readonly CodeBlock[], options: ExecuteOptions, takesStdin: boolean): void {
  checkExecuteArguments(blocks, options);
  if (options.stdin !== undefined && !takesStdin) {
    throw new InvalidInputError("This executor does not support standard input", {
      remedy: "Leave `stdin` out, or write the data to a file with `files.write`.",
    });
  }
}

/** A block that can run, or the sentence that says why it cannot. */
type PreparedBlock =
  | { readonly language: string; readonly code: string; readonly filename?: string }
  | { readonly problem: string };

/** What a session offers to blocks. */
interface BlockSurroundings {
  /** Canonical names of the languages that can run. */
  readonly languages: readonly string[];
  /** Explains why a known language is not among them. */
  readonly whyMissing: (language: string) => string | undefined;
  /** The work directory, as programs see it; `undefined` if that is not known. */
  readonly workspacePath: string | undefined;
}

/** Reads a block's language and file name. */
export function prepareBlock(
  block: CodeBlock,
  { languages, whyMissing, workspacePath }: BlockSurroundings,
): PreparedBlock {
  const { language: given } = block;
  // An editor's byte order mark is no part of the program, and shells would take it for a part of the first word.
  const code = block.code.replace(/^\uFEFF/, "");
  const language = languageOf(given, code, languages);
  if (!languages.includes(language)) {
    return {
      problem: whyMissing(language) ?? `unknown language "${given}"; this executor runs: ${languages.join(", ")}`,
    };
  }
  const named = filenameDirective(code);
  if (named === undefined) return { language, code: withShebangOptions(language, code) };
  try {
    refuseHome(named);
    return { language, code, filename: normalizeWorkspacePath(relativeToWorkspace(named, workspacePath)) };
  } catch (error) {
    if (WorkspacePathError.isInstance(error)) return { problem: filenameNotInWorkspace };
    if (InvalidInputError.isInstance(error)) return { problem: error.message };
    throw error;
  }
}

/** The program that a block's first line names, or its second after the file name, and the options for it. */
const shebang =
  /^(?:#[ \t]*filename:[^\n]*\n)?#![ \t]*(?:\S*\/env[ \t]+(?:-S[ \t]+)?)?(?:\S*\/)?(\w+)(?:[ \t]+-([A-Za-z]+))?[ \t]*(?:\r?\n|$)/;

/** A script for bash often runs in `sh` without an error, but with wrong results: its first line decides. */
function languageOf(given: string, code: string, languages: readonly string[]): string {
  const language = languageAmong(given, languages);
  if (language !== "sh") return language;
  return shebang.exec(code)?.[1] === "bash" ? "bash" : language;
}

/** The options of a script's first line, such as `-e`, which take effect only if the system runs the script itself. */
function withShebangOptions(language: string, code: string): string {
  if (language !== "bash" && language !== "sh") return code;
  const [line, , options] = shebang.exec(code) ?? [];
  if (line === undefined || options === undefined || !/^[abefhkmnuvxBCEHPT]+$/.test(options)) return code;
  return `set -${options}\n${code.slice(line.length)}`;
}

/** A block that fails with a sentence instead of running. */
export async function* failedBlock(problem: string): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  yield { type: "stderr", data: `${problem}\n` };
  return { exitCode: 1 };
}

/** The path that a block names in its first line, as `# filename: path` or `// filename: path`. */
export function filenameDirective(code: string): string | undefined {
  return /^(?:#|\/\/)[ \t]*filename:[ \t]*(\S(?:[^\r\n]*\S)?)[ \t]*(?:\r?\n|$)/i.exec(code)?.[1];
}
