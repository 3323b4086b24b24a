import { randomUUID } from "node:crypto";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { Heartbeat, pathOfLatin1, PlaceGone } from "@fenced/executor-kit";
import {
  connectSupervisor,
  type ConnectOptions,
  Loss,
  NoGreeting,
  sessionHasEnded,
  SessionLink,
  type Supervisor,
  type SupervisorInventory,
  type SupervisorStreams,
  untilGreeting,
} from "@fenced/executor-kit/supervisor";
import type { KeptSession, RemotePlace } from "../left-session.ts";
import { attachingProgram, remoteProgram, type RemoteSession } from "../remote/remote-program.ts";
import type { SshExecutorOptions } from "../ssh-executor-options.ts";
import { cannotRun, connectionError, noSsh } from "./ssh-error.ts";
import type { SshProcess } from "./ssh-process.ts";
import { SshRuns } from "./ssh-runs.ts";

/** Time limit for the host's greeting in milliseconds. */
const openMs = 60_000;
/** How long ssh's last message may take after the end of its output in milliseconds. */
const lastWordsMs = 1000;
const beatMs = 10_000;
/** Seconds of silence after which each side considers the other dead. An actual death is noticed at once. */
const silenceSeconds = 60;
/** The exit code of ssh itself; others are those of the program there. */
const broken = 255;

/** What a connection needs. */
export interface ConnectionRequest {
  readonly options: SshExecutorOptions;
  readonly session: Omit<RemoteSession, "greeting" | "id" | "silenceSeconds" | "workDir" | "socket">;
  /** Default: everything there ends with the connection. */
  readonly kept?: KeptSession | undefined;
}

/**
 * A connection to the remote host, and the supervisor at its other end. When the connection ends, everything there
 * ends, unless the session outlives it. When code there kills or stops the supervisor, everything ends, and so does the
 * connection.
 */
export class SshConnection {
  readonly place: RemotePlace;
  readonly inventory: SupervisorInventory;
  readonly supervisor: Supervisor;
  readonly #host: string;
  readonly #runs: SshRuns;
  readonly #link: SessionLink | undefined;
  readonly #heartbeat: Heartbeat;
  readonly #loss: Loss;
  #ended: Promise<void> | undefined;

  private constructor(host: string, runs: SshRuns, { place, inventory, supervisor, lost, lose, link }: OpenedSession) {
    this.#host = host;
    this.#runs = runs;
    this.place = place;
    this.inventory = inventory;
    this.supervisor = supervisor;
    this.#link = link;
    // While something else waits to be sent, that is a sign of life; a broken connection that may come back says nothing.
    const isBusy = (): boolean => link?.isCut === true || (runs.last?.child.stdin.writableLength ?? 0) > 0;
    this.#heartbeat = new Heartbeat({
      name: "The supervisor",
      // The supervisor's loss is reported elsewhere.
      ping: () => (isBusy() ? Promise.resolve() : supervisor.ping().catch(() => {})),
      tickMs: beatMs,
      patience: (silenceSeconds * 1000) / beatMs,
      onLost: lose,
    });
    this.#loss = new Loss(
      (cause) => this.#explain(cause),
      (error) => supervisor.fail(error),
    );
    void lost.then((error) => this.#loss.report(error));
  }

  /**
   * Connects, and, unless an earlier program has left the session, creates its directories there and starts the
   * supervisor.
   *
   * @throws BackendUnavailableError if the host cannot be reached or used, or the session is over; SessionInUseError if
   * another program uses it; `signal.reason` if it is aborted first.
   */
  static async open(request: ConnectionRequest, signal: AbortSignal): Promise<SshConnection> {
    const { host } = request.options;
    const runs = new SshRuns(request.options);
    try {
      return new SshConnection(host, runs, await openSession(request, runs, signal));
    } catch (error) {
      await runs.end(signal.aborted ? 0 : undefined);
      throw error;
    }
  }

  /** Resolves once everything there has ended, unless the connection was closed: to an error that says why. */
  get lost(): Promise<Error> {
    return this.#loss.lost;
  }

  /** True once something shows that it is lost, even if it is not known yet why. */
  get isLosing(): boolean {
    return this.#loss.isReported;
  }

  /**
   * Ends and deletes everything on the remote host, and the connection.
   *
   * @param isDetached - let go of a session that outlives its program.
   */
  async close(isDetached = false): Promise<void> {
    this.#loss.cancel();
    await this.#end(isDetached);
  }

  #end(isDetached = false): Promise<void> {
    this.#heartbeat.stop();
    const isLeft = isDetached || this.#link?.isReplaced === true;
    this.#ended ??= Promise.resolve(isLeft ? this.#link?.detach() : this.#link?.end()).then(() => this.#runs.end());
    return this.#ended;
  }

  /** Ends everything that blocks have started. */
  async #explain(cause: Error): Promise<Error> {
    const ssh = this.#runs.last;
    const hasEnded = ssh?.child.stdout.readableEnded === true;
    await this.#end();
    if (this.#link) return FencedError.isInstance(cause) ? cause : supervisorLost(this.#host, cause.message);
    // ssh may wait for its proxy until it is killed.
    const exitCode = ssh?.child.exitCode ?? null;
    const broke = exitCode === broken || (exitCode === null && hasEnded);
    const said = ssh?.said() ?? "";
    return broke
      ? connectionError(`The connection to ${this.#host} broke`, this.#host, said)
      : supervisorLost(this.#host, hasEnded ? `it ended. ${said}` : cause.message);
  }
}

interface OpenedSupervisor {
  readonly inventory: SupervisorInventory;
  readonly supervisor: Supervisor;
  /** Resolves to the reason when it can no longer be used. */
  readonly lost: Promise<Error>;
  /** Declares it unusable. */
  readonly lose: (reason: unknown) => void;
}

interface OpenedSession extends OpenedSupervisor {
  readonly place: RemotePlace;
  /** Absent if the session ends with the connection. */
  readonly link?: SessionLink;
}

async function openSession(
  { options, session, kept }: ConnectionRequest,
  runs: SshRuns,
  signal: AbortSignal,
): Promise<OpenedSession> {
  const { workDir, host } = options;
  if (kept?.left) return openKept(kept.left, kept, { runs, host }, signal);
  const greeting = `fenced-${randomUUID()}`;
  const own = { id: randomUUID(), greeting, workDir, silenceSeconds, socket: kept?.address.socket };
  const ssh = runs.start(remoteProgram({ ...session, ...own }));
  const place = await greet(ssh, { host, greeting }, signal);
  try {
    if (kept) return await openKept(place, kept, { runs, host, first: ssh }, signal);
    return { place, ...(await openSupervisor(ssh.child, {}, signal)) };
  } catch (error) {
    signal.throwIfAborted();
    const { exitCode, signalCode, stdout } = ssh.child;
    // The supervisor has not ended, so Python is not what is missing.
    const isRunning = !stdout.readableEnded && exitCode === null && signalCode === null;
    throw isRunning && BackendUnavailableError.isInstance(error) ? error : await notStarted(ssh, host);
  }
}

/** @param at - `first`: what has created the session just now. */
async function openKept(
  { directory, workspace, python }: RemotePlace,
  { address, keepAliveMs, left }: KeptSession,
  { runs, host, first }: { readonly runs: SshRuns; readonly host: string; readonly first?: SshProcess },
  signal: AbortSignal,
): Promise<OpenedSession> {
  const attach = attachingProgram(python, address.socket);
  const streamsOf = (ssh: SshProcess): SupervisorStreams => {
    runs.endWithStreams(ssh);
    return ssh.child;
  };
  const connect = (): Promise<SupervisorStreams> => Promise.resolve(streamsOf(runs.start(attach)));
  const { key } = address;
  const takeOver = left?.takeOver === true;
  let link: SessionLink | undefined;
  try {
    link = await SessionLink.open({
      key,
      keepAliveMs,
      takeOver,
      signal,
      connect,
      ...(first && { first: streamsOf(first) }),
    });
    const isCut = (): boolean => link?.isCut === true;
    const opened = await openSupervisor(link.streams, { isCut }, signal);
    return { place: { directory, workspace, python }, link, ...opened };
  } catch (cause) {
    await (left ? link?.detach() : link?.end());
    signal.throwIfAborted();
    if (cause instanceof PlaceGone) throw sessionHasEnded(`on ${host}`, left !== undefined, cause);
    const { last } = runs;
    const exitCode = await within(
      lastWordsMs,
      last ? last.ended.then(() => last.child.exitCode) : Promise.resolve(null),
    );
    if (!left || !last || exitCode !== broken) throw cause;
    throw connectionError(`The host ${host} cannot be reached`, host, last.said());
  }
}

async function openSupervisor(
  streams: SupervisorStreams,
  options: Pick<ConnectOptions, "isCut">,
  signal: AbortSignal,
): Promise<OpenedSupervisor> {
  let lose: (reason: unknown) => void = () => {};
  const lost = new Promise<Error>((resolve) => {
    lose = (reason) => resolve(reason instanceof Error ? reason : new Error(String(reason)));
  });
  const answer = connectSupervisor(streams, { ...options, signal, onLost: lose });
  streams.stdout.resume();
  const { inventory, supervisor } = await answer;
  if (supervisor) return { inventory, supervisor, lost, lose };
  throw new Error("there is no Python");
}

/** Waits until the programs there have said where they run. */
async function greet(
  ssh: SshProcess,
  { host, greeting }: { readonly host: string; readonly greeting: string },
  signal: AbortSignal,
): Promise<RemotePlace> {
  const { child } = ssh;
  child.on("error", (error) => child.stdout.destroy(noSsh(error)));
  const late = setTimeout(() => child.stdout.destroy(notAnswered(host)), openMs);
  const lineAfter = (start: string): Promise<string> => untilAborted(untilGreeting(child.stdout, start), signal);
  let begun = false;
  try {
    await lineAfter(greeting);
    begun = true;
    return readPlace(await lineAfter(""), host);
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof NoGreeting)) throw cause;
    if (begun) throw await notStarted(ssh, host);
    await within(lastWordsMs, ssh.ended);
    throw connectionError(`The host ${host} cannot be reached`, host, `${cause.message}\n${ssh.said()}`);
  } finally {
    clearTimeout(late);
  }
}

/** @throws BackendUnavailableError if the host cannot be used. */
function readPlace(line: string, host: string): RemotePlace {
  const [word, ...encoded] = line.split(" ");
  const [first = "", workspace, python] = encoded.map((each) =>
    pathOfLatin1(Buffer.from(each, "hex").toString("latin1")),
  );
  if (word === "place" && workspace !== undefined && python !== undefined) {
    return { directory: first, workspace, python };
  }
  throw new BackendUnavailableError(`The host ${host} cannot run code: ${first}`, {
    remedy: "Fix this on the host, set `workDir` to a writable directory, or use another host.",
  });
}

/** The error for a host where the supervisor has not started. */
async function notStarted({ child, ended, said }: SshProcess, host: string): Promise<BackendUnavailableError> {
  await within(lastWordsMs, ended);
  return child.exitCode === broken
    ? connectionError(`The connection to ${host} broke`, host, said())
    : cannotRun(host, said());
}

function notAnswered(host: string): BackendUnavailableError {
  return new BackendUnavailableError(`The host ${host} did not answer within ${openMs / 1000} s`, {
    remedy: "Check what keeps the host busy, and call again to reconnect.",
  });
}

function supervisorLost(host: string, reason: string): BackendUnavailableError {
  return new BackendUnavailableError(`The supervisor on ${host} was lost: ${reason.trim()}`, {
    remedy: "Call again to start a new one. If it happens again, check what kills programs of that account.",
  });
}
