import { type ChildProcess, spawn } from "node:child_process";
import { access } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import { ControlGroup, hostEnvironment, PlaceGone } from "@fenced/executor-kit";
import {
  attachCommand,
  type LeftSession,
  sessionHasEnded,
  SessionLink,
  type SupervisorStreams,
} from "@fenced/executor-kit/supervisor";
import type { SupervisorProcess } from "../running-supervisor.ts";
import type { LeftPlace } from "./left-session.ts";

/** Time limit for a session that was ended to be gone, in milliseconds. */
const goneMs = 10_000;

/** How to connect to a session. */
export interface KeptSession extends LeftSession, LeftPlace {
  readonly keepAliveMs: number;
  /** The streams of its server, if it was started just now. Default: an earlier program has left it. */
  readonly first?: SupervisorStreams;
  readonly takeOver: boolean;
}

/** The supervisor of a session that outlives this program. */
export class KeptProcess implements SupervisorProcess {
  readonly name: string = "The session";
  readonly lostRemedy: string = "Call again to start a new one.";
  readonly streams: SupervisorStreams;
  readonly #session: KeptSession;
  readonly #link: SessionLink;
  /** An earlier program's session is only ended once this program is connected to it. */
  #isOurs: boolean;

  private constructor(session: KeptSession, link: SessionLink) {
    this.#session = session;
    this.#link = link;
    this.streams = link.streams;
    this.#isOurs = session.first !== undefined;
  }

  /**
   * Connects to a session.
   *
   * @throws BackendUnavailableError if it is over or does not answer; SessionInUseError if another program uses it.
   */
  static async open(session: KeptSession, signal: AbortSignal): Promise<KeptProcess> {
    const { key, keepAliveMs, takeOver, socket, first } = session;
    const connect = (): Promise<SupervisorStreams> => Promise.resolve(attach(socket));
    try {
      return new KeptProcess(
        session,
        await SessionLink.open({ key, keepAliveMs, takeOver, signal, connect, ...(first && { first }) }),
      );
    } catch (error) {
      if (first) await gone(session);
      if (error instanceof PlaceGone) throw sessionHasEnded("on this machine", !first, error);
      signal.throwIfAborted();
      throw first ? notStarted(error) : error;
    }
  }

  get isCut(): boolean {
    return this.#link.isCut;
  }

  async check(): Promise<void> {
    this.#isOurs = true;
  }

  explain(cause: unknown): Error {
    return notStarted(cause);
  }

  kill(): void {
    void this.end().catch(() => {});
  }

  /** Ends everything of the session, unless another program uses it now, or it is left for one. */
  async end(isDetached = false): Promise<void> {
    if (isDetached || this.#link.isReplaced || !this.#isOurs) {
      await this.#link.detach();
      return;
    }
    if ((await this.#link.end()) === "replaced") return;
    if (await gone(this.#session)) return;
    // Code has stopped the server, whose end is what cleans up after the session.
    await Promise.all(this.#session.groups.map((each) => ControlGroup.at(each).kill()));
    if (!(await gone(this.#session))) throw notEnded(this.#session);
  }
}

/** Starts a program whose standard streams are a connection to a session of this machine. */
function attach(socket: string): SupervisorStreams {
  const [program, ...words] = attachCommand(socket);
  return streamsOf(spawn(program, words, { cwd: "/", env: hostEnvironment([]), stdio: "pipe", detached: true }));
}

/**
 * The streams of a process of a session. Once they are closed, it keeps nothing running here.
 *
 * @throws BackendUnavailableError if this program has too many open files.
 */
export function streamsOf(child: ChildProcess): SupervisorStreams {
  child.on("error", () => {});
  child.unref();
  const { stdin, stdout, stderr } = child;
  // Without descriptors for its streams, Node leaves them out.
  if (!stdin || !stdout || !stderr) {
    throw new BackendUnavailableError("A process of the session could not be started: too many files are open", {
      remedy: "Raise the limit on open files, `ulimit -n`, or use fewer executors at once.",
    });
  }
  for (const stream of [stdin, stdout, stderr]) stream.on("error", () => {});
  stdout.once("close", () => stderr.destroy());
  return { stdin, stdout, stderr };
}

/** Waits until what cleans up after the session has done so. Returns whether it has. */
async function gone({ directory, groups }: LeftPlace): Promise<boolean> {
  const end = performance.now() + goneMs;
  const exists = (place: string): Promise<boolean> =>
    access(place).then(
      () => true,
      () => false,
    );
  while (performance.now() < end) {
    if ((await Promise.all([directory, ...groups].map(exists))).every((each) => !each)) return true;
    await sleep(20);
  }
  return false;
}

function notEnded({ directory }: LeftPlace): BackendUnavailableError {
  return new BackendUnavailableError(`The session could not be ended; ${directory} is still there`, {
    remedy:
      "Its code has stopped the session's own programs, which are killed within two minutes; then check for processes that it has left.",
  });
}

function notStarted(cause: unknown): Error {
  if (FencedError.isInstance(cause) && !BackendUnavailableError.isInstance(cause)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new BackendUnavailableError(`The session did not start: ${reason}`, {
    remedy: "Install Python 3.8 or later as `python3`, or leave `keepAliveMs` out.",
    cause,
  });
}
