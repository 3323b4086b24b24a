import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ExecutorStoppedError, FencedError, SessionInUseError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { Heartbeat, PlaceGone } from "@fenced/executor-kit";
import {
  attachCommand,
  connectSupervisor,
  Loss,
  NoGreeting,
  type SessionAddress,
  sessionHasEnded,
  SessionLink,
  sessionServerCommand,
  type Supervisor,
  type SupervisorConfig,
  type SupervisorInventory,
  type SupervisorStreams,
  untilGreeting,
} from "@fenced/executor-kit/supervisor";
import type { ControlClient, SandboxState } from "../service/control-client.ts";
import { type ProgramStreams, startProgram } from "../service/program-streams.ts";
import type { SandboxAccess } from "../service/service-address.ts";
import { reasonOf, serviceError } from "../service/service-error.ts";
import { leaseMs, SandboxLease } from "./sandbox-lease.ts";

const startScript: string = readFileSync(new URL("./start.sh", import.meta.url), "utf8");

/** Milliseconds within which a broken connection of a session that ends with its program can come back. */
const reconnectMs = 30_000;
/** Milliseconds for the start script to say where the work directory is, and for the last words of a program that has ended. */
const [greetingMs, lastWordsMs] = [60_000, 500];
/** Milliseconds that `end` waits for the service, and that finding out the reason of a loss takes at most. */
const [killMs, explainMs] = [15_000, 5000];
/** Milliseconds after which a program that has died no longer counts as connected, and between two attempts meanwhile. */
const [silenceMs, againMs] = [12_000, 1000];
/** Milliseconds for which a sandbox outlives a session that nobody has come back to, and that saying so may take. */
const [leftMs, leavingMs] = [5000, 5000];
/** How often the supervisor must give a sign of life, in milliseconds, and how many may be missing. */
const [beatMs, patience] = [10_000, 6];

/** What a session needs, whether it is new or not. */
export interface SessionRequest {
  readonly control: ControlClient;
  readonly address: SessionAddress;
  /** How long it waits for a program. 0: it ends with this one. */
  readonly keepAliveMs: number;
}

/** What a new session needs. */
export interface NewSession extends SessionRequest {
  readonly sandbox: SandboxAccess;
  readonly workDir: string;
  readonly config: Omit<SupervisorConfig, "workspace">;
}

/** What connecting to the session of an earlier program needs. */
export interface OldSession extends SessionRequest {
  readonly id: string;
  readonly workspace: string;
  readonly takeOver: boolean;
}

interface Opened {
  readonly sandbox: SandboxAccess;
  readonly workspace: string;
  readonly link: SessionLink;
  readonly supervisor: Supervisor;
  readonly inventory: SupervisorInventory;
  /** Resolves to the reason when the supervisor can no longer be used. */
  readonly lost: Promise<Error>;
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
    { sandbox, workspace, link, supervisor, inventory, lost }: Opened,
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
      return new E2BSession(request, await start(request, signal));
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
      return new E2BSession(request, { workspace, ...(await openOldLink({ ...request, sandbox }, signal)) });
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

async function start(request: NewSession, signal: AbortSignal): Promise<Opened> {
  const { sandbox, workDir, address, config } = request;
  const word = `fenced-${randomUUID()}`;
  const server = sessionServerCommand(address.socket, { ...config, workspace: word });
  const first = await startProgram(sandbox, ["/bin/sh", "-c", startScript, "fenced", word, workDir, ...server], signal);
  try {
    const workspace = await workspaceOf(first, word, signal);
    return { workspace, ...(await openLink({ ...request, first, takeOver: false }, signal)) };
  } catch (error) {
    first.stdin.destroy();
    first.stdout.destroy();
    throw error;
  }
}

/** Reads what the start script says. */
async function workspaceOf({ stdout, stderr }: ProgramStreams, word: string, signal: AbortSignal): Promise<string> {
  let said = "";
  const listen = (bytes: Buffer): void => {
    said = (said + bytes.toString()).slice(-1000);
  };
  stderr.on("data", listen);
  const ended = new Promise<true>((resolve) => {
    stderr.once("end", () => resolve(true));
  });
  try {
    const path = await within(greetingMs, untilAborted(untilGreeting(stdout, `${word} `), signal));
    if (path?.startsWith("/") === true) return path;
    throw cannotRun(path === undefined ? `it did not answer within ${greetingMs / 1000} s` : `it says ${path}`);
  } catch (error) {
    if (!(error instanceof NoGreeting)) throw error;
    await within(lastWordsMs, ended);
    throw cannotRun(`${error.message}${said}`.trim());
  } finally {
    stderr.off("data", listen);
  }
}

/** What is needed to open a link. */
interface LinkRequest extends SessionRequest {
  readonly sandbox: SandboxAccess;
  readonly takeOver: boolean;
  /** What has started the session just now. Default: it exists already. */
  readonly first?: SupervisorStreams;
}

/**
 * The service does not tell a session that its program has died, which counts as connected until it was silent for some
 * seconds. One that is alive is heard of all the time.
 */
async function openOldLink(request: LinkRequest, signal: AbortSignal): Promise<Omit<Opened, "workspace">> {
  const end = performance.now() + silenceMs;
  for (;;) {
    try {
      return await openLink(request, signal);
    } catch (error) {
      if (!SessionInUseError.isInstance(error) || performance.now() > end) throw error;
    }
    await sleep(againMs, undefined, { signal });
  }
}

async function openLink(request: LinkRequest, signal: AbortSignal): Promise<Omit<Opened, "workspace">> {
  const { control, sandbox, address, keepAliveMs, takeOver, first } = request;
  const attach = attachCommand(address.socket);
  const connect = async (limit: AbortSignal): Promise<SupervisorStreams> => {
    try {
      return await startProgram(sandbox, attach, limit);
    } catch (error) {
      const state = await control.state(sandbox.id, limit);
      if (state !== "running") throw new PlaceGone(sandboxEnded(sandbox.id, state).message);
      throw error;
    }
  };
  const link = await SessionLink.open({
    key: address.key,
    keepAliveMs: keepAliveMs || reconnectMs,
    takeOver,
    signal,
    connect,
    ...(first && { first }),
  });
  try {
    let lose: (reason: Error) => void = () => {};
    const lost = new Promise<Error>((resolve) => {
      lose = resolve;
    });
    const answer = connectSupervisor(link.streams, { signal, onLost: lose, isCut: () => link.isCut });
    link.streams.stdout.resume();
    const { inventory, supervisor } = await answer;
    if (!supervisor) throw cannotRun("there is no Python");
    return { sandbox, link, inventory, supervisor, lost };
  } catch (error) {
    await (first ? link.end() : link.detach());
    throw error;
  }
}

function cannotRun(reason: string): BackendUnavailableError {
  return new BackendUnavailableError(`The sandbox cannot run code: ${reason}`, {
    remedy:
      "Use a template that has `sh` and Python 3.8 or later as `python3`, and a `workDir` that can be written to.",
  });
}

function sandboxEnded(id: string, state: SandboxState = "gone"): BackendUnavailableError {
  const what = state === "paused" ? "was paused" : "has ended: it was killed, or its time was over";
  return new BackendUnavailableError(`The sandbox ${id} ${what}`, { remedy: "Call again to use a new one." });
}

function supervisorLost(id: string, reason: string): BackendUnavailableError {
  return new BackendUnavailableError(`The supervisor in the sandbox ${id} was lost: ${reason.trim()}`, {
    remedy: "Call again to use a new sandbox. If it happens again, check what kills programs in the sandbox.",
  });
}
