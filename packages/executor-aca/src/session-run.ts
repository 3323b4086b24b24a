import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import {
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  PlaceGone,
  type Sink,
  writeAll,
} from "@fenced/executor-kit";
import type { BlockDisplays } from "@fenced/executor-kit/displays";
import { OutcomeUnknownError } from "./api/session-api.ts";
import { ServiceError } from "./http/service-error.ts";
import type { OpenPool } from "./open-pool.ts";
import type { RemoteSession, SessionState } from "./session/remote-session.ts";

/** What a run needs from its executor. */
export interface RunConditions {
  readonly maxOutputBytes: number;
  /** Whether the value of the last expression is printed. */
  readonly showsResult: boolean;
  /** What the block displays. */
  readonly displays: BlockDisplays;
}

interface RunSettings extends RunConditions {
  readonly pool: OpenPool;
}

/** Bytes requested in addition to what a result keeps, so that the omitted bytes can be counted. */
const outputReserve = 4096;
/** Maximum bytes of output to request, or to keep from a block whose session was given up. */
export const mostOutput: number = 16 * 1024 * 1024;

/** One block's run in a session; subclasses implement the transport. */
export abstract class SessionRun {
  protected readonly block: BlockRun;
  protected readonly sink: Sink;
  protected readonly session: RemoteSession;
  protected readonly pool: OpenPool;
  protected readonly conditions: RunConditions;
  protected readonly maxOutput: number;
  /** When the block had ended; `undefined` until then. */
  protected endedAt: number | undefined;
  protected stateLost = false;

  constructor(block: BlockRun, sink: Sink, session: RemoteSession, { pool, ...conditions }: RunSettings) {
    this.block = block;
    this.sink = sink;
    this.session = session;
    this.pool = pool;
    this.conditions = conditions;
    this.maxOutput = Math.min(conditions.maxOutputBytes + outputReserve, mostOutput);
  }

  /** Prepares the block in the session, or finds that it cannot run there. */
  protected abstract begin(): Promise<SessionState>;

  /** Runs the block after it was prepared. */
  protected abstract inSession(): Promise<BlockOutcome>;

  /** What the block printed until its session was given up. @param log - the executor's file of that session. */
  protected abstract printedUntil(log: string): Promise<readonly BlockEvent[]>;

  /** @throws PlaceGone if the session was gone, or its interpreter had died, before the block began. */
  async run(): Promise<BlockOutcome> {
    const state = await this.begin();
    if (state !== "ready") throw this.#gone(state);
    try {
      return await this.inSession();
    } catch (error) {
      // The block has run; only its output could not be shown.
      if (this.endedAt !== undefined) throw error;
      if (this.signal.aborted) return this.giveUp();
      // Refused because the session is gone: the block has not run.
      if (error instanceof ServiceError && error.isSessionGone) throw this.#gone("gone");
      throw asUnknownOutcome(error);
    }
  }

  /** Ends the block. */
  protected get signal(): AbortSignal {
    return this.sink.signal;
  }

  protected write(events: readonly BlockEvent[]): Promise<void> {
    return writeAll(this.sink, events);
  }

  #gone(state: "bare" | "gone"): PlaceGone {
    return new PlaceGone(this.pool.place.leave(this.session, state));
  }

  /** The outcome of a block that has run. */
  protected report(outcome: Omit<BlockOutcome, "endedAt" | "stateLost">): BlockOutcome {
    const endedAt = this.endedAt === undefined ? {} : { endedAt: this.endedAt };
    return { ...outcome, stateLost: this.stateLost, ...endedAt };
  }

  protected reportAborted(): BlockOutcome {
    return { exitCode: 1, stateLost: this.stateLost };
  }

  /** The service has no call that ends a running block, so this gives the session up. Keeps the block's output so far. */
  protected async giveUp(): Promise<BlockOutcome> {
    const { session } = this;
    // An executor that stops or restarts gives up the session itself.
    if (ExecutorStoppedError.isInstance(this.signal.reason)) return { exitCode: 1 };
    this.stateLost = true;
    if (this.pool.place.holds(session)) {
      this.pool.place.onLost(
        "The pool's session was abandoned to end what ran in it; its files were moved to a new one",
      );
    }
    let printed: readonly BlockEvent[] = [];
    await this.pool.place.replace(session, async (log) => {
      printed = await this.printedUntil(log);
    });
    const outcome = this.reportAborted();
    await this.write(printed);
    return outcome;
  }
}

function asUnknownOutcome(error: unknown): unknown {
  if (!(error instanceof OutcomeUnknownError)) return error;
  return new BackendUnavailableError(`${error.message}: it may or may not have run`, {
    remedy: "It was not sent again: check what it did before you run it again.",
    cause: error.cause,
  });
}
