import path from "node:path";
import { blockEnvironment, hostEnvironment } from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  HostWorkspace,
  SupervisedBackend,
  supervisorCommand,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { HostGround } from "./host-ground.ts";
import { HostProcess } from "./host-process.ts";
import { findLanguages, type FoundLanguages } from "./languages/find-languages.ts";
import type { ProcessSettings } from "./process-place.ts";
import { RunningSupervisor } from "./running-supervisor.ts";
import { inVirtualEnv } from "./virtual-env.ts";

/** The settings of a session. */
export interface HostSettings extends ProcessSettings {
  readonly warm: false | WarmOptions | undefined;
  /** True if Python blocks run in an interpreter that lives from block to block. */
  readonly stateful: boolean;
}

const memorySentence =
  "\nThe block was killed because this machine, or the container that it is in, ran out of memory. Process less data at a time.\n";

/** Makes places of the supervisors that a connector starts on this host. */
export function hostBackend(settings: HostSettings, connector: Connector): SupervisedBackend {
  const { id, env, functions, warm, stateful, cleanupTempFiles, virtualEnv } = settings;
  const common = { id, env, functions, warm, stateful, keepFiles: !cleanupTempFiles, network: undefined };
  // Install packages only into a dedicated environment, never into the host's own Python.
  return new SupervisedBackend({ ...common, memorySentence, installsApart: virtualEnv === undefined }, connector);
}

/** Completes the variables of a program, given those of this host that it may see. */
export function programVariables(
  { virtualEnv }: HostSettings,
  host: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const all = { ...host, ...blockEnvironment, ...given };
  return virtualEnv ? inVirtualEnv(all, virtualEnv) : all;
}

/** Connects to supervisors on this host, without a sandbox, and has their directories. */
export class HostConnector implements Connector {
  readonly #settings: HostSettings;
  readonly #ground: HostGround;
  readonly #hostVariables: Readonly<Record<string, string>>;
  readonly #languages: Promise<FoundLanguages>;

  private constructor(settings: HostSettings, ground: HostGround) {
    this.#settings = settings;
    this.#ground = ground;
    this.#hostVariables = hostEnvironment(settings.inheritEnv);
    const { table, givenLanguages: given } = settings;
    const cwd = ground.directories.workDirectory;
    this.#languages = findLanguages(table, { env: this.#variables(settings.env), cwd, given });
    // The first place sees its failure.
    this.#languages.catch(() => {});
  }

  /** @throws BackendUnavailableError if the work directory cannot be created. */
  static async open(settings: HostSettings): Promise<HostConnector> {
    return new HostConnector(settings, await HostGround.open(settings));
  }

  /** The work directory. */
  get workDirectory(): string {
    return this.#ground.directories.workDirectory;
  }

  /** Makes places of its supervisors. */
  backend(): SupervisedBackend {
    return hostBackend(this.#settings, this);
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { directories } = this.#ground;
    const directory = path.join(directories.sessionDirectory, "supervisor");
    const command = supervisorCommand({ directory, workspace: directories.workDirectory, onHost: true });
    const process = new HostProcess(command, this.#hostVariables, this.#ground);
    const running = await RunningSupervisor.open(process, signal);
    return {
      runner: running.supervisor,
      languages: await this.#languages,
      workspace: new HostWorkspace(directories, { keepFiles: !this.#settings.cleanupTempFiles }),
      directory,
      lost: running.lost,
      variables: (given) => this.#variables(given),
      end: () => running.end(),
    };
  }

  async close(): Promise<void> {
    await this.#languages.catch(() => {});
    await this.#ground.release();
  }

  #variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return programVariables(this.#settings, this.#hostVariables, given);
  }
}
