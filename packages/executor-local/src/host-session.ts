import path from "node:path";
import { blockEnvironment, hostEnvironment } from "@fenced/executor-kit";
import {
  type SupervisedFunctionPlaces,
  SupervisedSession,
  supervisorCommand,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { HostGround } from "./host-ground.ts";
import { HostProcess } from "./host-process.ts";
import { findLanguages, type FoundLanguages } from "./languages/find-languages.ts";
import { LocalPlace } from "./local-place.ts";
import type { LocalSessionSettings } from "./local-session.ts";
import { RunningSupervisor } from "./running-supervisor.ts";
import { inVirtualEnv } from "./virtual-env.ts";

/** The settings of a session. */
export interface HostSessionSettings extends LocalSessionSettings {
  readonly warm: false | WarmOptions | undefined;
  /** True if Python blocks run in an interpreter that lives from block to block. */
  readonly stateful: boolean;
  /** Called when the supervisor was lost and replaced; all processes of the session have ended. */
  readonly onReplaced: () => void;
  /** Called when the supervisor can no longer be used. */
  readonly onLost: (reason: string) => void;
}

const memorySentence =
  "\nThe block was killed because this machine, or the container that it is in, ran out of memory. Process less data at a time.\n";

/**
 * An unsandboxed session whose blocks are started by a supervisor on this host. A lost supervisor is replaced for the
 * next block.
 */
export class HostSession extends SupervisedSession<LocalPlace> {
  readonly #settings: HostSessionSettings;
  readonly #ground: HostGround;
  readonly #hostVariables: Readonly<Record<string, string>>;
  readonly #languages: Promise<FoundLanguages>;

  private constructor(settings: HostSessionSettings, ground: HostGround) {
    const { sessionDirectory, workDirectory } = ground.directories;
    const directory = path.join(sessionDirectory, "supervisor");
    const keepFiles = !settings.cleanupTempFiles;
    super({ ...settings, keepFiles, workspacePath: workDirectory, directory, network: undefined, memorySentence });
    this.#settings = settings;
    this.#ground = ground;
    this.#hostVariables = hostEnvironment(settings.inheritEnv);
    const { table, givenLanguages: given } = settings;
    this.#languages = findLanguages(table, { env: this.#variables(settings.env), cwd: workDirectory, given });
  }

  /** @throws BackendUnavailableError if the work directory cannot be created, or there is no Python 3.8 or later. */
  static async open(settings: HostSessionSettings, signal: AbortSignal): Promise<HostSession> {
    const ground = await HostGround.open(settings);
    try {
      const session = new HostSession(settings, ground);
      await session.ready(signal);
      return session;
    } catch (error) {
      await ground.release();
      throw error;
    }
  }

  override functionPlaces(): SupervisedFunctionPlaces {
    const { pythonPackages, ...places } = super.functionPlaces();
    // Install packages only into a dedicated environment, never into the host's own Python.
    return this.#settings.virtualEnv || pythonPackages === undefined ? places : { ...places, pythonPackages };
  }

  protected override claimFunctionsPackage(): void {
    this.#ground.directories.claimFunctionsPackage();
  }

  protected override async openPlace(old: LocalPlace | undefined, signal: AbortSignal): Promise<LocalPlace> {
    await old?.end();
    const { directories } = this.#ground;
    const config = { directory: this.directory, workspace: this.workspacePath, onHost: true };
    const process = new HostProcess(supervisorCommand(config), this.#hostVariables, this.#ground);
    const running = await RunningSupervisor.open(process, signal);
    return new LocalPlace(running, {
      languages: await this.#languages,
      directories,
      cleanupTempFiles: this.#settings.cleanupTempFiles,
      variables: (given) => this.#variables(given),
    });
  }

  protected override async closeWith(place: LocalPlace | undefined): Promise<void> {
    try {
      await (place?.end() ?? this.#ground.endProcesses({}));
    } finally {
      await this.#ground.release();
    }
  }

  #variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const { virtualEnv } = this.#settings;
    const all = { ...this.#hostVariables, ...blockEnvironment, ...given };
    return virtualEnv ? inVirtualEnv(all, virtualEnv) : all;
  }
}
