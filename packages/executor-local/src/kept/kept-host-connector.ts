import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import path from "node:path";
import { ControlGroup, hostEnvironment } from "@fenced/executor-kit";
import {
  attachCommand,
  type Connection,
  type Connector,
  sessionMark,
  sessionServerCommand,
  type SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { hostBackend, type HostSettings, programVariables } from "../host-connector.ts";
import { findLanguages } from "../languages/find-languages.ts";
import { type KeptSession, startedSession } from "./kept-process.ts";
import {
  connectToSession,
  createSession,
  type KeptSettings,
  makeWorkDirectory,
  type PlannedGroups,
} from "./kept-session.ts";

/** The settings of sessions without a sandbox that outlive their program. */
export interface KeptHostSettings extends HostSettings, KeptSettings {}

/**
 * Connects to supervisors on this host whose sessions outlive this program: a server holds each, and what cleans up
 * after the session waits for that server's end instead of this program's.
 */
export class KeptHostConnector implements Connector {
  readonly #settings: KeptHostSettings;
  readonly #hostVariables: Readonly<Record<string, string>>;
  #left: KeptHostSettings["left"];

  private constructor(settings: KeptHostSettings) {
    this.#settings = settings;
    this.#left = settings.left;
    this.#hostVariables = hostEnvironment(settings.inheritEnv);
  }

  /** Creates the work directory, if it is given. */
  static async open(settings: KeptHostSettings): Promise<KeptHostConnector> {
    await makeWorkDirectory(settings);
    return new KeptHostConnector(settings);
  }

  /** The work directory, if it is given. */
  get workDirectory(): string | undefined {
    return this.#settings.workDirectory;
  }

  /** Makes places of its supervisors. */
  backend(): SupervisedBackend {
    return hostBackend(this.#settings, this);
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { table, givenLanguages: given, env, keepAliveMs } = this.#settings;
    // Before there is anything to undo.
    const languages = await findLanguages(table, { env: this.#variables(env), cwd: "/", given });
    const session: KeptSession = this.#left ? { ...this.#left, keepAliveMs } : await this.#create();
    const connection = await connectToSession(
      this.#settings,
      {
        session,
        access: { command: attachCommand(session.socket), env: hostEnvironment([]) },
        directory: path.join(session.directory, "supervisor"),
        isLeft: this.#left !== undefined,
        lostRemedy: "Call again to start a new one.",
        languages: () => languages,
        variables: (each) => this.#variables(each),
      },
      signal,
    );
    this.#left = undefined;
    return connection;
  }

  async close(): Promise<void> {
    // Each session has what cleans up after it.
  }

  async #create(): Promise<KeptSession> {
    return createSession(this.#settings, await planGroup(), async ({ directories, groups, socket, mark }) => {
      const { sessionDirectory, workDirectory: workspace } = directories;
      const directory = path.join(sessionDirectory, "supervisor");
      const programs = ["python3", "python"];
      const command = sessionServerCommand(socket, { directory, workspace, onHost: true, programs });
      const env = { ...this.#hostVariables, [sessionMark]: this.#settings.id, ...mark };
      const [program, ...words] = groups?.wrap(command, env) ?? command;
      return {
        groups: groups ? [groups] : [],
        variables: {},
        // Detached from this program's terminal, whose Ctrl-C is not meant for blocks.
        start: (cleaner) => ({
          streams: startedSession(
            spawn(program, words, { cwd: "/", env, stdio: ["pipe", "pipe", "pipe", cleaner], detached: true }),
          ),
        }),
      };
    });
  }

  #variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return programVariables(this.#settings, this.#hostVariables, given);
  }
}

/** Where this program can create one, a group for everything of a session, its server included. */
async function planGroup(): Promise<PlannedGroups<ControlGroup | undefined>> {
  const group = await ControlGroup.plan(`fenced-${randomUUID()}`);
  return {
    all: group ? [group] : [],
    make: async () => ((await group?.make()) === true ? group : undefined),
    remove: async () => group?.remove(),
  };
}
