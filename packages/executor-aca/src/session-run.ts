import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import { timeIsUp, type BlockEvent, type BlockOutcome, type BlockRun, type Sink, writeAll } from "@fenced/executor-kit";
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
  /** Writes the block's file into the session, if it has one. */
  readonly writeFile: () => Promise<void>;
  readonly setUpFunctions: () => Promise<void>;
}

/** Bytes requested in addition to what a result keeps, so that the omitted bytes can be counted. */
const outputReserve = 4096;
/** Maximum bytes of output to request, or to keep from a block whose session was given up. */
export const mostOutput: number = 16 * 1024 * 1024;
/** How many sessions a block may lose before the call fails. */
const sessionAttempts = 5;

/** One block's run in a session; subclasses implement the transport. */
export abstract class SessionRun {
  protected readonly block: BlockRun;
  protected readonly sink: Sink;
  protected readonly pool: OpenPool;
  protected readonly conditions: RunConditions;
  protected readonly maxOutput: number;
  /** When the block had ended; `undefined` until then. */
  protected endedAt: number | undefined;
  protected stateLost = false;
  #reported = false;

  constructor(block: BlockRun, sink: Sink, pool: OpenPool, conditions: RunConditions) {
    this.block = block;
    this.sink = sink;
    this.pool = pool;
    this.conditions = conditions;
    this.maxOutput = Math.min(conditions.maxOutputBytes + outputReserve, mostOutput);
  }

  /** Prepares the block in the session, or finds that it cannot run there. */
  protected abstract begin(session: RemoteSession): Promise<SessionState>;

  /** Runs the block in a session in which it was prepared. */
  protected abstract inSession(session: RemoteSession): Promise<BlockOutcome>;

  /** What the block printed until its session was given up. @param log - the executor's file of that session. */
  protected abstract printedUntil(log: string): Promise<readonly BlockEvent[]>;

  async run(): Promise<BlockOutcome> {
    const { place } = this.pool;
    this.stateLost = place.lossUnreported;
    place.lossUnreported = false;
    try {
      return await this.#inSomeSession();
    } finally {
      // An aborted or rejected call does not report that variables are gone, so the next result must.
      if (this.stateLost && !this.#reported) place.lossUnreported = true;
    }
  }

  /** Ends the block. */
  protected get signal(): AbortSignal {
    return this.sink.signal;
  }

  protected write(events: readonly BlockEvent[]): Promise<void> {
    return writeAll(this.sink, events);
  }

  async #inSomeSession(): Promise<BlockOutcome> {
    for (let attempt = 1; ; attempt += 1) {
      const session = await this.#prepare();
      try {
        return await this.inSession(session);
      } catch (error) {
        // The block has run; only its output could not be shown.
        if (this.endedAt !== undefined) throw error;
        if (this.signal.aborted) return this.giveUp(session);
        // Refused because the session is gone: the block has not run.
        const lost = error instanceof ServiceError && error.isSessionGone && attempt < sessionAttempts;
        if (!lost) throw asUnknownOutcome(error);
        await this.#renew(session, "gone");
      }
    }
  }

  /** The session, prepared with our variables and functions and the block's environment. */
  async #prepare(): Promise<RemoteSession> {
    const { place } = this.pool;
    for (let attempt = 1; attempt <= sessionAttempts; attempt += 1) {
      const session = await place.session(this.signal);
      if (place.functionsMissing) {
        place.functionsMissing = false;
        await this.conditions.setUpFunctions().catch((error: unknown) => {
          place.functionsMissing = true;
          throw error;
        });
      }
      const state = await this.begin(session);
      if (state === "ready") return session;
      await this.#renew(session, state);
    }
    throw new BackendUnavailableError("The pool keeps losing the sessions that it creates", {
      remedy: "Check the pool's cooldown and its logs.",
    });
  }

  async #renew(lost: RemoteSession, state: "bare" | "gone"): Promise<void> {
    const { place } = this.pool;
    this.stateLost = true;
    if (state === "bare") await place.repair(lost, this.signal);
    else await place.renew(lost, this.signal);
    await this.conditions.writeFile();
  }

  /** The outcome of a block whose result reports a lost state. */
  protected report(outcome: Omit<BlockOutcome, "endedAt" | "stateLost">): BlockOutcome {
    this.#reported = true;
    const endedAt = this.endedAt === undefined ? {} : { endedAt: this.endedAt };
    return { ...outcome, stateLost: this.stateLost, ...endedAt };
  }

  /** The outcome of an aborted block; its result reports a lost state only if its time was up. */
  protected reportAborted(): BlockOutcome {
    this.#reported = this.signal.reason === timeIsUp;
    return { exitCode: 1, stateLost: this.stateLost };
  }

  /** The service has no call that ends a running block, so this gives the session up. Keeps the block's output so far. */
  protected async giveUp(session: RemoteSession): Promise<BlockOutcome> {
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
