import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { ControlGroup, hostEnvironment, Leash, directoryNotCreated, SessionDirectories } from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  newAddress,
  pythonOf,
  SentWorkspace,
  sessionMark,
  sessionServerCommand,
  sessionToJson,
  type SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { hostBackend, type HostSettings, programVariables } from "../host-connector.ts";
import { findLanguages } from "../languages/find-languages.ts";
import { RunningSupervisor } from "../running-supervisor.ts";
import { KeptProcess, type KeptSession, streamsOf } from "./kept-process.ts";
import type { LeftOnHost } from "./left-session.ts";

/** The settings of sessions that outlive their program. */
export interface KeptHostSettings extends HostSettings {
  readonly keepAliveMs: number;
  /** A session to connect to instead of creating the first one. */
  readonly left: LeftOnHost | undefined;
}

/** A variable of all processes of one session; the supervisor passes on those with this beginning. */
const placeMark = "FENCED_PLACE";

/**
 * Connects to supervisors on this host whose sessions outlive this program: a server holds each, and what cleans up
 * after the session waits for that server's end instead of this program's.
 */
export class KeptHostConnector implements Connector {
  readonly #settings: KeptHostSettings;
  readonly #hostVariables: Readonly<Record<string, string>>;
  #isFirst = true;

  constructor(settings: KeptHostSettings) {
    this.#settings = settings;
    this.#hostVariables = hostEnvironment(settings.inheritEnv);
  }

  /** The work directory, if it is given. */
  get workDirectory(): string | undefined {
    return this.#settings.workDirectory;
  }

  /** @throws BackendUnavailableError if a work directory that is given does not exist and cannot be created. */
  async prepare(): Promise<void> {
    const { left, workDirectory } = this.#settings;
    if (left || workDirectory === undefined) return;
    try {
      await mkdir(workDirectory, { recursive: true });
    } catch (cause) {
      throw directoryNotCreated(cause);
    }
  }

  /** Makes places of its supervisors. */
  backend(): SupervisedBackend {
    return hostBackend(this.#settings, this);
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { id, table, givenLanguages: given, env, cleanupTempFiles, functionsModule, keepAliveMs } = this.#settings;
    // Before there is anything to undo.
    const languages = await findLanguages(table, { env: this.#variables(env), cwd: "/", given });
    const left = this.#isFirst ? this.#settings.left : undefined;
    const session: KeptSession = left ? { ...left, keepAliveMs } : await this.#create();
    const { directory, workspace, filePrefix, groups } = session;
    const started = await KeptProcess.open(session, signal);
    const running = await RunningSupervisor.open(started, signal);
    this.#isFirst = false;
    return {
      runner: running.supervisor,
      languages,
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
      directory: path.join(directory, "supervisor"),
      lost: running.lost,
      isLeft: left !== undefined,
      session: sessionToJson(session, { directory, workspace, filePrefix, groups: [...groups] }),
      variables: (each) => this.#variables(each),
      end: ({ isDetached }) => running.end(isDetached),
    };
  }

  async close(): Promise<void> {
    // Each session has what cleans up after it.
  }

  async #create(): Promise<KeptSession> {
    const { id, cleanupTempFiles, keepAliveMs } = this.#settings;
    const directories = await SessionDirectories.plan(this.#settings);
    const planned = await ControlGroup.plan(`fenced-${randomUUID()}`);
    const mark = { name: placeMark, value: randomUUID() };
    const filePrefix = `${prefixOf(id)}${randomUUID().slice(0, 4)}-`;
    const { removeOwned, remove } = directories.leashed;
    const prefix = path.join(directories.workDirectory, filePrefix);
    // Started before there is anything to remove, since this program may die at any moment.
    const leash = new Leash({
      mark,
      owner: id,
      controlGroups: planned ? [planned] : [],
      remove,
      removeOwned,
      removePrefixes: cleanupTempFiles ? [prefix] : [],
    });
    try {
      await directories.make();
      const group = (await planned?.make()) === true ? planned : undefined;
      const { sessionDirectory: directory, workDirectory: workspace } = directories;
      const { socket, key } = newAddress();
      const supervisor = path.join(directory, "supervisor");
      const programs = ["python3", "python"];
      const command = sessionServerCommand(socket, { directory: supervisor, workspace, onHost: true, programs });
      const env = { ...this.#hostVariables, [sessionMark]: id, [mark.name]: mark.value };
      const [program, ...words] = group?.wrap(command, env) ?? command;
      // Detached from this program's terminal, whose Ctrl-C is not meant for blocks.
      const server = leash.handTo((stream) =>
        spawn(program, words, { cwd: "/", env, stdio: ["pipe", "pipe", "pipe", stream], detached: true }),
      );
      const first = streamsOf(server);
      const groups = group ? [group.directory] : [];
      return { id, socket, key, directory, workspace, filePrefix, groups, keepAliveMs, first, takeOver: false };
    } catch (error) {
      await directories.remove().catch(() => {});
      await planned?.remove();
      await leash.release();
      throw error;
    }
  }

  #variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return programVariables(this.#settings, this.#hostVariables, given);
  }
}

/** The beginning of the names of all files of an executor in its work directory. */
function prefixOf(id: string): string {
  return `.fenced-${id.slice(0, 8)}`;
}
