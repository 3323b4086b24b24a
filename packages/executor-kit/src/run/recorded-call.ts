import { createHash } from "node:crypto";
import {
  BackendUnavailableError,
  type CodeBlock,
  type CodeResult,
  type HostCallEvent,
  makeCodeResult,
  type NetworkDecision,
  type RecordedHost,
  type RecordedHostCall,
  type RecordedRun,
  type RunRecorder,
  type WorkspaceChanges,
} from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { FinishedBlock } from "./block-output.ts";
import type { BlockOutcome } from "./block-run.ts";
import { combineUsage } from "./combine-usage.ts";

/** Limits on what is kept of a run until its end: code chooses how much it does. */
const [mostCalls, mostHosts] = [1000, 1000];
/** How long a record may take for one run, in milliseconds: its disk may hang, or it may be on another machine. */
const patienceMs = 30_000;

/** Collects what a record says of one call of an executor. */
export class RecordedCall {
  readonly #record: RunRecorder;
  readonly #executor: string;
  readonly #blocks: readonly CodeBlock[];
  readonly #started: number = performance.now();
  readonly #finished: FinishedBlock[] = [];
  /** The block that the abort of the run ended. */
  #cutOff: BlockOutcome | undefined;
  readonly #calls = new Map<string, RecordedHostCall>();
  readonly #reached = new Map<string, RecordedHost>();
  #knowsReached = false;
  /** The record can take the run. */
  hasBegun = false;

  /** @param executor - the name of its class. */
  constructor(record: RunRecorder, executor: string, blocks: readonly CodeBlock[]) {
    this.#record = record;
    this.#executor = executor;
    this.#blocks = blocks;
  }

  /** @throws what the record throws if it cannot take the run. */
  async begin(): Promise<void> {
    await inTime(this.#record.begin());
    this.hasBegun = true;
  }

  hostCall(event: HostCallEvent): void {
    const { callId, name } = event;
    if (event.type === "host-result") {
      if (this.#calls.has(callId)) this.#calls.set(callId, { name, outcome: event.error ? "failed" : "returned" });
    } else if (this.#calls.size < mostCalls) {
      this.#calls.set(callId, { name, outcome: "unfinished" });
    }
  }

  block(block: FinishedBlock): void {
    this.#finished.push(block);
    this.#reach(block);
  }

  cutOff(outcome: BlockOutcome): void {
    this.#cutOff = outcome;
    this.#reach(outcome);
  }

  /** Records a run that has a result. Returns the result, which says so if that was not possible. */
  async end(result: CodeResult): Promise<CodeResult> {
    const { exitCode, timedOut, stateLost, changes, usage, network } = result;
    const unrecorded = await this.#add({
      outcome: "finished",
      exitCode,
      timedOut,
      stateLost,
      ...(changes && { changes }),
      ...(usage && { usage }),
      ...(network && { refused: network.map(refusedHost) }),
    });
    return unrecorded === undefined ? result : makeCodeResult({ ...result, unrecorded });
  }

  /** Records a run that has none. */
  async fail(error: unknown, changes: WorkspaceChanges | undefined): Promise<void> {
    const begun = [...this.#finished, ...(this.#cutOff ? [this.#cutOff] : [])];
    const refused = begun.flatMap(({ network = [] }) => network.map(refusedHost));
    const usage = combineUsage(begun.map((block) => block.usage));
    await this.#add({
      outcome: "rejected",
      error: sentence(error),
      ...(changes && { changes }),
      ...(usage && { usage }),
      ...(refused.length > 0 && { refused }),
    });
  }

  #reach({ reached }: Pick<BlockOutcome, "reached">): void {
    this.#knowsReached ||= reached !== undefined;
    for (const { host, port } of reached ?? []) {
      if (this.#reached.size < mostHosts) this.#reached.set(`${host} ${port}`, { host, port });
    }
  }

  /** @returns why it could not be recorded. */
  async #add(end: Omit<RecordedRun, "executor" | "blocks" | "durationMs" | "hostCalls">): Promise<string | undefined> {
    try {
      const run: RecordedRun = {
        executor: this.#executor,
        ...end,
        durationMs: Math.round(performance.now() - this.#started),
        blocks: this.#blocks.map(({ language, code }, index) => ({
          language,
          sha256: createHash("sha256").update(code).digest("hex"),
          ...endOf(this.#finished[index]),
        })),
        ...(this.#knowsReached && { reached: [...this.#reached.values()] }),
        hostCalls: [...this.#calls.values()],
      };
      await inTime(this.#record.add(run));
      return undefined;
    } catch (error) {
      const reason = sentence(error);
      process.emitWarning(`A run was not recorded. ${reason}`, { code: "FENCED_RECORD" });
      return reason;
    }
  }
}

function endOf(block: FinishedBlock | undefined): { readonly exitCode?: number; readonly durationMs?: number } {
  return block ? { exitCode: block.result.exitCode, durationMs: Math.round(block.result.durationMs) } : {};
}

function refusedHost({ host, port, reason }: NetworkDecision): RecordedHost {
  return { host, port, ...(reason !== undefined && { reason }) };
}

/** @throws BackendUnavailableError if the record does not answer. */
async function inTime(answer: Promise<void>): Promise<void> {
  const hasAnswered = await within(
    patienceMs,
    Promise.resolve(answer).then(() => true),
  );
  if (hasAnswered === true) return;
  throw new BackendUnavailableError(`The record did not answer within ${patienceMs / 1000} s`, {
    remedy: "Check the disk or the service that keeps it.",
  });
}

/** Callers can abort with any value as the reason. */
function sentence(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    return "An error that cannot be shown";
  }
}
