import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import {
  connectSupervisor,
  Loss,
  type Supervisor,
  type SupervisorInventory,
  type SupervisorStreams,
} from "@fenced/executor-kit/supervisor";

/** A newly started process on this machine that is, or contains, a supervisor. */
export interface SupervisorProcess {
  /** Its name in messages: "The sandbox". */
  readonly name: string;
  /** What to do if it is lost. */
  readonly lostRemedy: string;
  readonly streams: SupervisorStreams;
  /** True while the connection is broken and may come back. Default: never. */
  readonly isCut?: boolean;

  /** Called once its supervisor has answered. @throws BackendUnavailableError if it is not set up as required. */
  check(): Promise<void>;

  /** Returns an error that says why it did not start, and what to do. */
  explain(cause: unknown): Error;

  /** Kills it and everything that blocks started, without waiting. */
  kill(): void;

  /**
   * Ends it and everything that blocks started; resolves when all of that is dead.
   *
   * @param isDetached - let go of a session that outlives this program. Default: false.
   */
  end(isDetached?: boolean): Promise<void>;
}

/** The process that answered is not a supervisor, because there is no Python. */
export class NoPython extends Error {}

/** A supervisor that responds, until it is lost. */
export class RunningSupervisor {
  readonly inventory: SupervisorInventory;
  readonly supervisor: Supervisor;
  readonly #process: SupervisorProcess;
  readonly #loss: Loss;

  private constructor(started: SupervisorProcess, inventory: SupervisorInventory, supervisor: Supervisor) {
    this.#process = started;
    this.inventory = inventory;
    this.supervisor = supervisor;
    const { name, lostRemedy: remedy } = started;
    this.#loss = new Loss(
      (cause) =>
        // Another program has taken it over.
        ExecutorStoppedError.isInstance(cause)
          ? cause
          : new BackendUnavailableError(`${name} is lost: ${cause.message}`, { remedy, cause }),
      (error) => {
        supervisor.fail(error);
        started.kill();
      },
    );
  }

  /**
   * Waits until the supervisor of a process responds; ends the process if it does not.
   *
   * @throws BackendUnavailableError that says why it did not start, and what to do; `signal.reason` if it is aborted
   * first.
   */
  static async open(started: SupervisorProcess, signal: AbortSignal): Promise<RunningSupervisor> {
    let running: RunningSupervisor | undefined;
    let early: Error | undefined;
    const onLost = (error: Error): void => {
      early = error;
      if (running) void running.#loss.report(error);
    };
    try {
      const { inventory, supervisor } = await connectSupervisor(started.streams, {
        signal,
        onLost,
        isCut: () => started.isCut === true,
      });
      if (!supervisor) throw new NoPython("there is no `python3` on the PATH");
      await started.check();
      running = new RunningSupervisor(started, inventory, supervisor);
      if (early) void running.#loss.report(early);
      return running;
    } catch (error) {
      await started.end();
      signal.throwIfAborted();
      throw started.explain(error);
    }
  }

  /** Resolves once it can no longer run blocks, unless it was ended on purpose: to an error that says why. */
  get lost(): Promise<Error> {
    return this.#loss.lost;
  }

  /** Ends all processes below it, and waits until they are dead; or lets go of a session that outlives this program. */
  async end(isDetached = false): Promise<void> {
    this.#loss.cancel();
    await this.#process.end(isDetached);
  }
}
