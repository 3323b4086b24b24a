import { BackendUnavailableError, ExecutorStoppedError, FencedError } from "@fenced/core";
import { Heartbeat, PlaceGone } from "@fenced/executor-kit";
import {
  Loss,
  sessionHasEnded,
  type SessionLink,
  type Supervisor,
  type SupervisorInventory,
} from "@fenced/executor-kit/supervisor";
import type { ControlClient } from "../service/control-client.ts";
import { reasonOf, serviceError } from "../service/service-error.ts";
import {
  type NewSession,
  type OpenedSession,
  reopenSession,
  type SessionRequest,
  startSession,
} from "./open-session.ts";
import { leaseMs, SandboxLease } from "./sandbox-lease.ts";
import { sandboxEnded, supervisorLost } from "./session-errors.ts";

/** Milliseconds that `end` waits for the service, and that finding out the reason of a loss takes at most. */
const [killMs, explainMs] = [15_000, 5000];
/** Milliseconds for which a sandbox outlives a session that nobody has come back to, and that saying so may take. */
const [leftMs, leavingMs] = [5000, 5000];
/** How often the supervisor must give a sign of life, in milliseconds, and how many may be missing. */
const [beatMs, patience] = [10_000, 6];

/** What connecting to the session of an earlier program needs. */
export interface OldSession extends SessionRequest {
  readonly id: string;
  readonly workspace: string;
  readonly takeOver: boolean;
}

/**
 * A session in a sandbox: a server there starts the supervisor, and passes on what it says, over one connection after
 * another. The sandbox ends with the session.
 */
export class E2BSession {
  /** Absolute path of the work directory. */
  readonly workspace: string;
  readonly sandbox: string;
  readonly supervisor: Supervisor;
  readonly inventory: SupervisorInventory;
  readonly #control: ControlClient;
  readonly #keepAliveMs: number;
  readonly #link: SessionLink;
  readonly #lease: SandboxLease;
  readonly #heartbeat: Heartbeat;
  readonly #loss: Loss;
  #ended: Promise<void> | undefined;

  private constructor(
    { control, keepAliveMs }: SessionRequest,
    { sandbox, workspace, link, supervisor, inventory, lost }: OpenedSession,
  ) {
    this.workspace = workspace;
    this.sandbox = sandbox.id;
    this.supervisor = supervisor;
    this.inventory = inventory;
    this.#control = control;
    this.#keepAliveMs = keepAliveMs;
    this.#link = link;
    this.#loss = new Loss(
      (hint) => this.#explain(hint),
      (error) => supervisor.fail(error),
    );
    const report = (reason: unknown): void => void this.#loss.report(reason);
    this.#lease = new SandboxLease(control, sandbox.id, leaseMs(keepAliveMs), () => report(sandboxEnded(sandbox.id)));
    this.#heartbeat = new Heartbeat({
      name: "The supervisor",
      // Its loss is reported elsewhere, and a broken connection that may come back says nothing.
      ping: () => (link.isCut ? Promise.resolve() : supervisor.ping().catch(() => {})),
      tickMs: beatMs,
      patience,
      onLost: report,
    });
    void lost.then(report);
  }

  /**
   * Starts a session in a new sandbox, which is killed if that fails.
   *
   * @throws BackendUnavailableError; the signal's reason.
   */
  static async start(request: NewSession, signal: AbortSignal): Promise<E2BSession> {
    const { control, sandbox } = request;
    try {
      return new E2BSession(request, await startSession(request, signal));
    } catch (error) {
      await control.kill(sandbox.id, AbortSignal.timeout(killMs)).catch(() => {});
      signal.throwIfAborted();
      throw serviceError(
        `No session could be started in the sandbox ${sandbox.id}`,
        "connection",
        control.address,
        error,
      );
    }
  }

  /**
   * Connects to a session that an earlier program has left, and resumes its sandbox if that is paused.
   *
   * @throws BackendUnavailableError if it is over or cannot be reached; SessionInUseError; the signal's reason.
   */
  static async connect(request: OldSession, signal: AbortSignal): Promise<E2BSession> {
    const { control, id, keepAliveMs, workspace } = request;
    try {
      const sandbox = await control.connect(id, leaseMs(keepAliveMs), signal);
      return new E2BSession(request, { workspace, ...(await reopenSession({ ...request, sandbox }, signal)) });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof PlaceGone) throw sessionHasEnded(`in the sandbox ${id}`, true, error);
      throw serviceError(`The sandbox ${id} could not be connected to`, "connection", control.address, error);
    }
  }

  /** Resolves once nothing can run there any longer, unless the session was closed: to an error that says why. */
  get lost(): Promise<Error> {
    return this.#loss.lost;
  }

  /** True once something shows that it is lost, even if it is not known yet why. */
  get isLosing(): boolean {
    return this.#loss.isReported;
  }

  /**
   * Ends the session and its sandbox, or lets go of a session that outlives its program.
   *
   * @throws BackendUnavailableError if the service does not end the sandbox.
   */
  async close(isDetached = false): Promise<void> {
    this.#loss.cancel();
    await this.#end({ isDetached });
  }

  #end(how: { readonly isDetached?: boolean; readonly isOver?: boolean } = {}): Promise<void> {
    this.#ended ??= this.#endOnce(how);
    return this.#ended;
  }

  async #endOnce({
    isDetached = false,
    isOver = false,
  }: {
    readonly isDetached?: boolean;
    readonly isOver?: boolean;
  }): Promise<void> {
    this.#heartbeat.stop();
    this.#lease.end();
    if (isDetached || this.#link.isReplaced) return this.#leave();
    // While a session that outlives this program could not be reached, another one may have connected to it.
    const isOurs = isOver || this.#keepAliveMs === 0 || (await this.#link.end()) === "told";
    this.#link.streams.stdin.destroy();
    if (!isOurs) return;
    try {
      await this.#control.kill(this.sandbox, AbortSignal.timeout(killMs));
    } catch (cause) {
      throw new BackendUnavailableError(`The sandbox ${this.sandbox} could not be ended: ${reasonOf(cause)}`, {
        remedy: `The service ends it by itself within ${leaseMs(this.#keepAliveMs) / 1000} s.`,
        cause,
      });
    }
  }

  /** The sandbox then ends soon after its session. Said before another program can connect, which asks for more. */
  async #leave(): Promise<void> {
    if (!this.#link.isReplaced) {
      const signal = AbortSignal.timeout(leavingMs);
      // Otherwise, it ends a little later.
      await this.#control.setTimeout(this.sandbox, this.#keepAliveMs + leftMs, signal).catch(() => {});
    }
    await this.#link.detach();
  }

  async #explain(hint: Error): Promise<Error> {
    if (ExecutorStoppedError.isInstance(hint)) {
      await this.#end();
      return hint;
    }
    const signal = AbortSignal.timeout(explainMs);
    const state = await this.#control.state(this.sandbox, signal).catch(() => undefined);
    // A sandbox that cannot be ended ends by itself.
    await this.#end({ isOver: hint instanceof PlaceGone && state !== "paused" }).catch(() => {});
    if (state !== undefined && state !== "running") return sandboxEnded(this.sandbox, state);
    return FencedError.isInstance(hint) ? hint : supervisorLost(this.sandbox, hint.message);
  }
}
