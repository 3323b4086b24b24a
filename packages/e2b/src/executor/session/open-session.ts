import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { SessionInUseError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { PlaceGone } from "@fenced/executor-kit";
import {
  attachCommand,
  connectSupervisor,
  NoGreeting,
  paced,
  type SessionAddress,
  SessionLink,
  sessionServerCommand,
  type Supervisor,
  type SupervisorConfig,
  type SupervisorInventory,
  type SupervisorStreams,
  untilGreeting,
} from "@fenced/executor-kit/supervisor";
import type { ControlClient } from "../service/control-client.ts";
import { type ProgramStreams, startProgram } from "../service/program-streams.ts";
import type { SandboxAccess } from "../service/service-address.ts";
import { cannotRun, sandboxEnded } from "./session-errors.ts";

const startScript: string = readFileSync(new URL("./start.sh", import.meta.url), "utf8");

/** Milliseconds within which a broken connection of a session that ends with its program can come back. */
const reconnectMs = 30_000;
/** Milliseconds for the start script to say where the work directory is, and for the last words of a program that has ended. */
const [greetingMs, lastWordsMs] = [60_000, 500];
/** Milliseconds after which a program that has died no longer counts as connected, and between two attempts meanwhile. */
const [silenceMs, againMs] = [12_000, 1000];

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

/** A session, and the way to it. */
export interface OpenedSession {
  readonly sandbox: SandboxAccess;
  readonly workspace: string;
  readonly link: SessionLink;
  readonly supervisor: Supervisor;
  readonly inventory: SupervisorInventory;
  /** Resolves to the reason when the supervisor can no longer be used. */
  readonly lost: Promise<Error>;
}

/**
 * Starts a session in a new sandbox.
 *
 * @throws BackendUnavailableError if the sandbox cannot run it; the error of the service; the signal's reason.
 */
export async function startSession(request: NewSession, signal: AbortSignal): Promise<OpenedSession> {
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
 * Connects to a session that exists. The service does not tell it that its last program has died, which counts as
 * connected until it was silent for some seconds. One that is alive is heard of all the time.
 *
 * @throws PlaceGone if it is over; SessionInUseError; the error of the service; the signal's reason.
 */
export async function reopenSession(
  request: LinkRequest,
  signal: AbortSignal,
): Promise<Omit<OpenedSession, "workspace">> {
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

async function openLink(request: LinkRequest, signal: AbortSignal): Promise<Omit<OpenedSession, "workspace">> {
  const { control, sandbox, address, keepAliveMs, takeOver, first } = request;
  const attach = attachCommand(address.socket);
  const pace = paced();
  const connect = async (limit: AbortSignal): Promise<SupervisorStreams> => {
    await pace(limit);
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
