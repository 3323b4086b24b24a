import { type ChildProcess, spawn } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import { ControlGroup, Leash, PlaceGone } from "@fenced/executor-kit";
import {
  type LeftSession,
  sessionHasEnded,
  SessionLink,
  type SupervisorStreams,
} from "@fenced/executor-kit/supervisor";
import type { SupervisorProcess } from "../running-supervisor.ts";
import type { LeftPlace } from "./left-session.ts";

/** Time limit for a session that was ended to be gone, unless it is being removed, in milliseconds. */
const goneMs = 10_000;
/** How long its last words may take to arrive, in milliseconds. */
const lastWordsMs = 200;

/** A session that was started just now. */
export interface SessionStart {
  /** The streams of its server. */
  readonly streams: SupervisorStreams;
  /** What to send before the supervisor answers. Default: nothing. */
  readonly input?: Uint8Array;

  /** As of a `SupervisorProcess`. Default: nothing is checked. */
  check?(): Promise<void>;
  /** As of a `SupervisorProcess`. Default: only `cause` says why it did not start. */
  explain?(cause: unknown): Error;
}

/** A session of this machine. */
export interface KeptSession extends LeftSession, LeftPlace {
  readonly keepAliveMs: number;
  /** Default: an earlier program has left it. */
  readonly first?: SessionStart;
  readonly takeOver: boolean;
}

/** The program that connects to the server of a session. */
export interface SessionAccess {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
}

/** The supervisor of a session that outlives this program. */
export class KeptProcess implements SupervisorProcess {
  readonly name: string = "The session";
  readonly lostRemedy: string;
  readonly streams: SupervisorStreams;
  readonly #session: KeptSession;
  readonly #link: SessionLink;
  /** An earlier program's session is only ended once this program is connected to it. */
  #isOurs: boolean;

  private constructor(session: KeptSession, link: SessionLink, lostRemedy: string) {
    this.#session = session;
    this.#link = link;
    this.lostRemedy = lostRemedy;
    this.streams = link.streams;
    this.#isOurs = session.first !== undefined;
  }

  /**
   * Connects to a session.
   *
   * @throws BackendUnavailableError if it is over or does not answer; SessionInUseError if another program uses it.
   */
  static async open(
    session: KeptSession,
    { access: how, lostRemedy }: { readonly access: SessionAccess; readonly lostRemedy: string },
    signal: AbortSignal,
  ): Promise<KeptProcess> {
    const { key, keepAliveMs, takeOver, first } = session;
    const connect = (): Promise<SupervisorStreams> => Promise.resolve(attach(how));
    const streams = first && { first: first.streams };
    try {
      const link = await SessionLink.open({ key, keepAliveMs, takeOver, signal, connect, ...streams });
      if (first?.input) link.streams.stdin.write(first.input);
      return new KeptProcess(session, link, lostRemedy);
    } catch (error) {
      if (first) await gone(session);
      signal.throwIfAborted();
      if (first?.explain) throw first.explain(error);
      if (error instanceof PlaceGone) throw sessionHasEnded("on this machine", !first, error);
      throw first ? notStarted(error) : error;
    }
  }

  get isCut(): boolean {
    return this.#link.isCut;
  }

  async check(): Promise<void> {
    await this.#session.first?.check?.();
    this.#isOurs = true;
  }

  explain(cause: unknown): Error {
    return this.#session.first?.explain?.(cause) ?? notStarted(cause);
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
    const session = this.#session;
    if (await gone(session)) return;
    // Code may have stopped the server, whose end is what cleans up after the session.
    await Promise.all(session.groups.map((each) => ControlGroup.at(each).kill()));
    do {
      if (await gone(session)) return;
      // Its directory may be large.
    } while ((await remains(session)) && (await isBeingRemoved(session)));
    if (await remains(session)) throw notEnded(session);
  }
}

/** Starts a program whose standard streams are a connection to a session of this machine. */
function attach({ command: [program, ...words], env }: SessionAccess): SupervisorStreams {
  return startedSession(spawn(program, words, { cwd: "/", env, stdio: "pipe", detached: true }));
}

/**
 * The streams of a process of a session. Once they are closed, it keeps nothing running here.
 *
 * @throws BackendUnavailableError if this program has too many open files.
 */
export function startedSession(child: ChildProcess): SupervisorStreams {
  child.on("error", () => {});
  child.unref();
  const { stdin, stdout, stderr } = child;
  // Without descriptors for its streams, Node leaves them out.
  if (!stdin || !stdout || !stderr) {
    child.kill("SIGKILL");
    throw new BackendUnavailableError("A process of the session could not be started: too many files are open", {
      remedy: "Raise the limit on open files, `ulimit -n`, or use fewer executors at once.",
    });
  }
  for (const stream of [stdin, stdout, stderr]) stream.on("error", () => {});
  stdout.once("close", () => setTimeout(() => stderr.destroy(), lastWordsMs).unref());
  return { stdin, stdout, stderr };
}

/** Waits until what cleans up after the session has done so. Returns whether it has. */
async function gone(session: KeptSession): Promise<boolean> {
  const end = performance.now() + goneMs;
  while (performance.now() < end) {
    // What is in a work directory that stays is removed last.
    if (!(await remains(session)) && !(await Leash.isCleaning(session.cleaner, session.directory))) return true;
    await sleep(20);
  }
  return false;
}

/** Whether a directory or a control group of the session is left. */
async function remains({ directory, groups }: KeptSession): Promise<boolean> {
  const found = [directory, ...groups].map((each) =>
    access(each).then(
      () => true,
      () => false,
    ),
  );
  return (await Promise.all(found)).includes(true);
}

/** Whether the session's server has ended, and what cleans up after it is at work. */
async function isBeingRemoved({ socket, cleaner, directory }: KeptSession): Promise<boolean> {
  const sockets = await readFile("/proc/net/unix", "utf8").catch(() => "");
  return !sockets.includes(`@${socket}\n`) && (await Leash.isCleaning(cleaner, directory));
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
