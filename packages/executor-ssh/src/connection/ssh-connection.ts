import { randomUUID } from "node:crypto";
import { BackendUnavailableError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { Heartbeat, killProcesses, Leash, pathOfLatin1 } from "@fenced/executor-kit";
import { connectSupervisor, Loss, type Supervisor, type SupervisorInventory } from "@fenced/executor-kit/supervisor";
import { remoteProgram, type RemoteSession } from "../remote/remote-program.ts";
import type { SshExecutorOptions } from "../ssh-executor-options.ts";
import { cannotRun, connectionError, noSsh } from "./ssh-error.ts";
import { startSsh, type SshProcess } from "./ssh-process.ts";
import { NoGreeting, untilGreeting } from "./until-greeting.ts";

/** Time limit for the host's greeting in milliseconds. */
const openMs = 60_000;
/** Time limit for it to end everything in milliseconds. */
const closeMs = 10_000;
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
  readonly session: Omit<RemoteSession, "greeting" | "id" | "silenceSeconds" | "workDir">;
}

/** Where the host runs the session's programs. */
interface RemotePlace {
  /** The session's own directory there. */
  readonly directory: string;
  /** The work directory there, without symbolic links. */
  readonly workspace: string;
  /** The interpreter of the supervisor. */
  readonly python: string;
}

/**
 * One connection to the remote host, and the supervisor at its other end. When the connection ends, everything there
 * ends. When code there kills or stops the supervisor, everything ends, and so does the connection.
 */
export class SshConnection {
  readonly place: RemotePlace;
  readonly inventory: SupervisorInventory;
  readonly supervisor: Supervisor;
  readonly #host: string;
  readonly #parts: LocalParts;
  readonly #heartbeat: Heartbeat;
  readonly #loss: Loss;
  #ended: Promise<void> | undefined;

  private constructor(host: string, parts: LocalParts, opened: OpenedSupervisor) {
    this.#host = host;
    this.#parts = parts;
    this.place = opened.place;
    this.inventory = opened.inventory;
    this.supervisor = opened.supervisor;
    const { stdin } = parts.ssh.child;
    this.#heartbeat = new Heartbeat({
      name: "The supervisor",
      // While something else waits to be sent, that is a sign of life. The supervisor's loss is reported elsewhere.
      ping: () => (stdin.writableLength > 0 ? Promise.resolve() : opened.supervisor.ping().catch(() => {})),
      tickMs: beatMs,
      patience: (silenceSeconds * 1000) / beatMs,
      onLost: opened.lose,
    });
    this.#loss = new Loss(
      (cause) => this.#explain(cause),
      (error) => opened.supervisor.fail(error),
    );
    void opened.lost.then((error) => this.#loss.report(error));
  }

  /**
   * Connects, creates the session's directories there, and starts the supervisor.
   *
   * @throws BackendUnavailableError if the host cannot be reached or used; `signal.reason` if it is aborted first.
   */
  static async open({ options, session }: ConnectionRequest, signal: AbortSignal): Promise<SshConnection> {
    const id = randomUUID();
    const mark = { name: "FENCED_SSH", value: id };
    const greeting = `fenced-${randomUUID()}`;
    const { workDir, host } = options;
    const { command, text } = remoteProgram({ ...session, id, greeting, workDir, silenceSeconds });
    const leash = new Leash({ mark, remove: [] });
    let parts: LocalParts | undefined;
    try {
      parts = { mark, leash, ssh: startSsh(options, command, mark) };
      parts.ssh.child.stdin.write(text);
      return new SshConnection(host, parts, await openSupervisor(parts.ssh, { host, greeting }, signal));
    } catch (error) {
      await (parts ? endParts(parts, signal.aborted ? 0 : closeMs) : leash.release());
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

  /** Ends and deletes everything on the remote host, and the connection. */
  async close(): Promise<void> {
    this.#loss.cancel();
    await this.#end();
  }

  #end(): Promise<void> {
    this.#heartbeat.stop();
    this.#ended ??= endParts(this.#parts, closeMs);
    return this.#ended;
  }

  /** Ends everything that blocks have started. */
  async #explain(cause: Error): Promise<Error> {
    const { child, said } = this.#parts.ssh;
    const hasEnded = child.stdout.readableEnded;
    await this.#end();
    // ssh may wait for its proxy until it is killed.
    const broke = child.exitCode === broken || (child.exitCode === null && hasEnded);
    return broke
      ? connectionError(`The connection to ${this.#host} broke`, this.#host, said())
      : supervisorLost(this.#host, hasEnded ? `it ended. ${said()}` : cause.message);
  }
}

/** What a connection consists of on this host. */
interface LocalParts {
  /** A variable of everything that the connection starts here. */
  readonly mark: { readonly name: string; readonly value: string };
  readonly leash: Leash;
  readonly ssh: SshProcess;
}

async function endParts({ mark, leash, ssh }: LocalParts, limitMs: number): Promise<void> {
  const { child, ended, kill } = ssh;
  child.stdin.destroy();
  // Otherwise, it would wait for a reader.
  child.stdout.resume();
  const late = setTimeout(kill, limitMs);
  await ended;
  clearTimeout(late);
  // A proxy may have left ssh's group.
  await killProcesses({ mark });
  await leash.release();
}

interface OpenedSupervisor {
  readonly place: RemotePlace;
  readonly inventory: SupervisorInventory;
  readonly supervisor: Supervisor;
  /** Resolves to the reason when it can no longer be used. */
  readonly lost: Promise<Error>;
  /** Declares it unusable. */
  readonly lose: (reason: unknown) => void;
}

async function openSupervisor(
  ssh: SshProcess,
  { host, greeting }: { readonly host: string; readonly greeting: string },
  signal: AbortSignal,
): Promise<OpenedSupervisor> {
  const place = await greet(ssh, { host, greeting }, signal);
  let lose: (reason: unknown) => void = () => {};
  const lost = new Promise<Error>((resolve) => {
    lose = (reason) => resolve(reason instanceof Error ? reason : new Error(String(reason)));
  });
  try {
    const answer = connectSupervisor(ssh.child, { signal, onLost: lose });
    ssh.child.stdout.resume();
    const { inventory, supervisor } = await answer;
    if (supervisor) return { place, inventory, supervisor, lost, lose };
  } catch (error) {
    signal.throwIfAborted();
    const { exitCode, signalCode, stdout } = ssh.child;
    // The supervisor has not ended, so Python is not what is missing.
    const runs = !stdout.readableEnded && exitCode === null && signalCode === null;
    if (runs && BackendUnavailableError.isInstance(error)) throw error;
  }
  throw await notStarted(ssh, host);
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
