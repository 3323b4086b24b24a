import { randomUUID } from "node:crypto";
import path from "node:path";
import type { Writable } from "node:stream";
import type { FunctionWithRequirements } from "@fenced/core";
import { makeDirectories } from "@fenced/core/runtime";
import {
  type ControlGroup,
  directoryNotCreated,
  Leash,
  type PlaceLanguages,
  SessionDirectories,
} from "@fenced/executor-kit";
import {
  type Connection,
  newAddress,
  pythonOf,
  SentWorkspace,
  sessionToJson,
  type SupervisorInventory,
} from "@fenced/executor-kit/supervisor";
import { RunningSupervisor } from "../running-supervisor.ts";
import { KeptProcess, type KeptSession, type SessionAccess, type SessionStart } from "./kept-process.ts";
import type { LeftOnHost, LeftPlace } from "./left-session.ts";

/** The settings of all sessions of this machine that outlive their program. */
export interface KeptSettings {
  /** The executor's id. */
  readonly id: string;
  /** Absolute path; `undefined` for a directory that the session creates. */
  readonly workDirectory: string | undefined;
  readonly cleanupTempFiles: boolean;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  readonly keepAliveMs: number;
  /** A session to connect to instead of creating the first one. */
  readonly left: LeftOnHost | undefined;
}

/**
 * Creates the work directory of an executor, whose sessions come later.
 *
 * @throws BackendUnavailableError if one that is given does not exist and cannot be created.
 */
export async function makeWorkDirectory({ left, workDirectory }: KeptSettings): Promise<void> {
  if (left || workDirectory === undefined) return;
  try {
    await makeDirectories(workDirectory);
  } catch (cause) {
    throw directoryNotCreated(cause);
  }
}

/** A variable of all processes of one session; the supervisor passes on those with this beginning. */
const placeMark = "FENCED_PLACE";

/** The control groups of a session, planned before they are created. */
export interface PlannedGroups<Made> {
  readonly all: readonly ControlGroup[];
  make(): Promise<Made>;
  /** Removes those that are empty. */
  remove(): Promise<unknown>;
}

/** What a session is started with. */
export interface SessionParts<Made> {
  readonly directories: SessionDirectories;
  readonly groups: Made;
  /** The abstract socket of its server. */
  readonly socket: string;
  /** A variable that all of its processes must have. */
  readonly mark: Readonly<Record<string, string>>;
}

/** A session that is ready to start. */
export interface PreparedSession extends Pick<LeftPlace, "variables"> {
  /** The control groups that were made. */
  readonly groups: readonly ControlGroup[];

  /** Starts its server, which holds the stream among its descriptors as long as it lives. */
  start(cleaner: Writable): SessionStart;
}

/** Creates a session, and leaves it to its server to say when it is to be cleaned up. */
export async function createSession<Made>(
  settings: KeptSettings,
  groups: PlannedGroups<Made>,
  prepare: (parts: SessionParts<Made>) => Promise<PreparedSession>,
): Promise<KeptSession> {
  const { id, cleanupTempFiles, keepAliveMs } = settings;
  const directories = await SessionDirectories.plan(settings);
  const mark = { name: placeMark, value: randomUUID() };
  const filePrefix = `${prefixOf(id)}${randomUUID().slice(0, 4)}-`;
  const { removeOwned, remove } = directories.leashed;
  const prefix = path.join(directories.workDirectory, filePrefix);
  // Started before there is anything to remove, since this program may die at any moment.
  const leash = new Leash({
    mark,
    owner: id,
    controlGroups: groups.all,
    remove,
    removeOwned,
    removePrefixes: cleanupTempFiles ? [prefix] : [],
  });
  let isHandedOver = false;
  try {
    await directories.make();
    const address = newAddress();
    const { socket } = address;
    const made = { directories, groups: await groups.make(), socket, mark: { [mark.name]: mark.value } };
    const prepared = await prepare(made);
    isHandedOver = true;
    const first = leash.handTo((stream) => prepared.start(stream));
    return {
      id,
      ...address,
      directory: directories.sessionDirectory,
      workspace: directories.workDirectory,
      filePrefix,
      groups: prepared.groups.map((each) => each.directory),
      // Without it, there would be nothing to hand over.
      cleaner: leash.pid ?? 1,
      variables: prepared.variables,
      keepAliveMs,
      takeOver: false,
      first,
    };
  } catch (error) {
    // It then cleans up once the server has ended, or has not begun.
    if (isHandedOver) throw error;
    await directories.remove().catch(() => {});
    await groups.remove();
    await leash.release();
    throw error;
  }
}

/** A session to connect to, and what is special about its place. */
export interface SessionConnection {
  readonly session: KeptSession;
  readonly access: SessionAccess;
  /** The supervisor's own directory, as programs see it. */
  readonly directory: string;
  /** An earlier program has left the session. */
  readonly isLeft: boolean;
  /** What to do if it is lost. */
  readonly lostRemedy: string;
  languages(inventory: SupervisorInventory): PlaceLanguages;
  /** As of a `Connection`. */
  variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
}

/**
 * Connects to a session.
 *
 * @throws BackendUnavailableError if it is over or does not answer; SessionInUseError if another program uses it.
 */
export async function connectToSession(
  { id, cleanupTempFiles, functionsModule }: KeptSettings,
  given: SessionConnection,
  signal: AbortSignal,
): Promise<Connection> {
  const { session, isLeft } = given;
  const { directory, workspace, filePrefix, groups, cleaner, variables } = session;
  const started = await KeptProcess.open(session, given, signal);
  const running = await RunningSupervisor.open(started, signal);
  return {
    runner: running.supervisor,
    languages: given.languages(running.inventory),
    workspace: new SentWorkspace({
      supervisor: running.supervisor,
      python: pythonOf(running.inventory),
      path: workspace,
      filePrefix,
      ownPrefix: prefixOf(id),
      keepFiles: !cleanupTempFiles,
      functionsModule,
      onHost: workspace,
      hasPackage: true,
    }),
    directory: given.directory,
    lost: running.lost,
    isLeft,
    session: sessionToJson(session, {
      directory,
      workspace,
      filePrefix,
      groups: [...groups],
      cleaner,
      variables: { ...variables },
    }),
    variables: (each) => given.variables(each),
    end: ({ isDetached }) => running.end(isDetached),
  };
}

/** The beginning of the names of all files of an executor in its work directory. */
function prefixOf(id: string): string {
  return `.fenced-${id.slice(0, 8)}`;
}
