import { randomUUID } from "node:crypto";
import {
  type BackendFiles,
  type BlockRun,
  blockSource,
  type CommandLineSessionRequest,
  findPlaceLanguages,
  type PlaceLanguages,
  programsOf,
} from "@fenced/executor-kit";
import type { BlockFile, SupervisedPlace, Supervisor } from "@fenced/executor-kit/supervisor";
import { SshConnection } from "./connection/ssh-connection.ts";
import type { SshExecutorOptions } from "./ssh-executor-options.ts";

/** What a place needs. */
export interface PlaceRequest extends CommandLineSessionRequest<SshExecutorOptions> {
  /** The session's files, wherever its current place is. */
  readonly files: BackendFiles;
}

/** A connection to the remote host, with everything that blocks find there. */
export class SshPlace implements SupervisedPlace {
  readonly runner: Supervisor;
  readonly languages: PlaceLanguages;
  readonly files: BackendFiles;
  /** The session's own directory there. */
  readonly directory: string;
  /** The work directory there. */
  readonly workspace: string;
  /** A Python interpreter there. */
  readonly python: string;
  /** Prefix of the names of our own files in the work directory. */
  readonly filePrefix: string;
  readonly #connection: SshConnection;
  readonly #keepFiles: boolean;

  private constructor(
    { options, table, givenLanguages, files }: PlaceRequest,
    connection: SshConnection,
    filePrefix: string,
  ) {
    this.runner = connection.supervisor;
    this.languages = findPlaceLanguages(table, givenLanguages, connection.inventory, {
      name: `the host ${options.host}`,
      remedy: "install it there, or put it on the PATH with `env`",
    });
    this.files = files;
    this.directory = connection.place.directory;
    this.workspace = connection.place.workspace;
    this.python = connection.place.python;
    this.filePrefix = filePrefix;
    this.#connection = connection;
    this.#keepFiles = options.cleanupTempFiles === false;
  }

  /**
   * Connects to the host.
   *
   * @throws BackendUnavailableError if it cannot be reached or used; `signal.reason` if it is aborted first.
   */
  static async open(request: PlaceRequest, signal: AbortSignal): Promise<SshPlace> {
    const { options, id: owner, functionsModule, table } = request;
    // Several sessions may share a work directory, also with what is left of a lost connection.
    const filePrefix = `${ownFiles(owner)}${randomUUID().slice(0, 4)}-`;
    const keepFiles = options.cleanupTempFiles === false;
    const session = {
      filePrefix,
      keepFiles,
      functionsModule,
      owner,
      programs: programsOf(table),
      path: options.env?.["PATH"],
    };
    return new SshPlace(request, await SshConnection.open({ options, session }, signal), filePrefix);
  }

  get lost(): Error | undefined {
    return this.#connection.lost;
  }

  /** Sends our own files together with the program, which saves a request; the supervisor removes them again. */
  async writeBlock({ language, code, filename }: BlockRun, extension: string): Promise<BlockFile> {
    const content = blockSource(language, code);
    if (filename !== undefined) {
      await this.files.write(filename, content);
      return { path: `${this.workspace}/${filename}` };
    }
    const name = `${this.filePrefix}${randomUUID().slice(0, 12)}.${extension}`;
    return { path: `${this.workspace}/${name}`, sent: { name, content, keep: this.#keepFiles } };
  }

  async settle(): Promise<undefined> {
    // The supervisor has removed the block's file.
  }

  whenLost(action: (reason: string) => void): void {
    this.#connection.whenLost(action);
  }

  end(): Promise<void> {
    return this.#connection.close();
  }
}

/** The beginning of the names of an executor's own files in the work directory. */
export function ownFiles(owner: string): string {
  return `.fenced-${owner.slice(0, 8)}`;
}
