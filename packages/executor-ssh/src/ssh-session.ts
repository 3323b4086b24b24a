import { randomUUID } from "node:crypto";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError, canonicalLanguage } from "@fenced/core";
import {
  findPlaceLanguages,
  functionsPackageMarker,
  Leash,
  programsOf,
  RemoteFiles,
  type LanguageCommand,
  type PlaceLanguages,
} from "@fenced/executor-kit";
import { SshConnection } from "./connection/ssh-connection.ts";
import { SshFileAccess } from "./files/ssh-file-access.ts";
import { supervisorProgram } from "./remote/supervisor-program.ts";
import { RemoteCall } from "./run/remote-call.ts";
import type { SshExecutorOptions } from "./ssh-executor-options.ts";

/** Silence after which the remote host takes this program for dead, in seconds. Its death is noticed at once. */
const silenceSeconds = 60;
/** The longest path of a directory in which ssh can make its socket, in bytes. */
const longestDirectory = 70;

/** What a session is made for. */
export interface SessionRequest {
  readonly options: SshExecutorOptions;
  /** The executor's id. */
  readonly owner: string;
  readonly functionsModule: string;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** The session that can be used now: this one, or the one after it if its connection broke. */
  readonly ready: () => Promise<SshSession>;
}

/** A connection to the remote host, and what it is used for until it is closed or breaks. */
export class SshSession {
  readonly languages: PlaceLanguages;
  readonly files: RemoteFiles;
  readonly connection: SshConnection;
  readonly #nonce: string;
  readonly #filePrefix: string;
  readonly #directory: string;
  readonly #leash: Leash;
  #blocks = 0;

  private constructor(request: SessionRequest, parts: SessionParts, connection: SshConnection) {
    const { options, table, functionsModule } = request;
    this.connection = connection;
    this.#nonce = parts.nonce;
    this.#filePrefix = parts.filePrefix;
    this.#directory = parts.directory;
    this.#leash = parts.leash;
    const given = new Set(Object.keys(options.languages ?? {}).map(canonicalLanguage));
    this.languages = findPlaceLanguages(table, given, connection.greeting.inventory, {
      name: `the host ${options.host}`,
      remedy: "install it there, or put it on the PATH with `env`",
    });
    const caller = { host: options.host, call: async (words: string) => (await request.ready()).call(words) };
    this.files = new RemoteFiles(
      new SshFileAccess(caller),
      (file) => file.startsWith(parts.filePrefix) || file.startsWith(`node_modules/${functionsModule}/`),
    );
  }

  /**
   * Connects to the host, and makes the session's directory there.
   *
   * @throws BackendUnavailableError if the host cannot be reached or used.
   */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<SshSession> {
    const parts = await makeParts(request.owner);
    const { directory, mark, nonce, filePrefix } = parts;
    const { options, owner, functionsModule, table } = request;
    const program = supervisorProgram({
      id: parts.id,
      nonce,
      workDir: options.workDir,
      filePrefix,
      keepFiles: options.cleanupTempFiles === false,
      functionsModule,
      owner,
      functionsMarker: functionsPackageMarker,
      programs: programsOf(table),
      path: options.env?.["PATH"],
      silenceSeconds,
    });
    try {
      return new SshSession(
        request,
        parts,
        await SshConnection.open({ options, directory, mark, nonce, program }, signal),
      );
    } catch (error) {
      await removeParts(parts);
      throw error;
    }
  }

  /** The session's directory on the remote host. */
  get directory(): string {
    return this.connection.greeting.directory;
  }

  /** The work directory there. */
  get workspace(): string {
    return this.connection.greeting.workspace;
  }

  /** A number for a block. */
  nextBlock(): number {
    return (this.#blocks += 1);
  }

  /** A name for a file in the work directory that is the session's own. */
  fileFor(block: number, extension: string): string {
    return `${this.#filePrefix}${block}.${extension}`;
  }

  /**
   * Calls a function of the program that the session has on the remote host.
   *
   * @throws BackendUnavailableError if the connection is gone.
   */
  call(words: string): RemoteCall {
    return new RemoteCall(this.connection, this.#nonce, words);
  }

  /** Ends and deletes everything, here and there. */
  async close(): Promise<void> {
    try {
      await this.connection.close();
    } finally {
      await removeParts({ directory: this.#directory, leash: this.#leash });
    }
  }
}

/** What a session has on this host. */
interface SessionParts {
  readonly id: string;
  readonly nonce: string;
  readonly filePrefix: string;
  readonly directory: string;
  readonly mark: { readonly name: string; readonly value: string };
  readonly leash: Leash;
}

async function makeParts(owner: string): Promise<SessionParts> {
  const id = randomUUID();
  const mark = { name: "FENCED_SSH", value: id };
  const directory = await makeDirectory();
  return {
    id,
    nonce: randomUUID(),
    // Several sessions may share a work directory.
    filePrefix: `.fenced-${owner.slice(0, 8)}${id.slice(0, 4)}-`,
    directory,
    mark,
    leash: new Leash({ mark, remove: [directory] }),
  };
}

async function removeParts({ directory, leash }: Pick<SessionParts, "directory" | "leash">): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  await leash.release();
}

async function makeDirectory(): Promise<string> {
  const own = path.join(await realpath(tmpdir()), "fenced-ssh-");
  const parent = Buffer.byteLength(own) + 6 <= longestDirectory ? own : "/tmp/fenced-ssh-";
  return mkdtemp(parent).catch((cause: unknown) => {
    throw new BackendUnavailableError(`No directory for the connection can be made: ${String(cause)}`, {
      remedy: "See that the temporary directory can be written to and its disk is not full.",
      cause,
    });
  });
}
