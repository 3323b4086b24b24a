import { randomUUID } from "node:crypto";
import { mkdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import {
  type CommandLineSessionRequest,
  findPlaceLanguages,
  functionsPackageMarker,
  Leash,
  programsOf,
  RemoteFiles,
  type PlaceLanguages,
} from "@fenced/executor-kit";
import { SshConnection } from "./connection/ssh-connection.ts";
import { SshFileAccess } from "./files/ssh-file-access.ts";
import { RemoteCall, type CallRequest } from "./run/remote-call.ts";
import type { SshExecutorOptions } from "./ssh-executor-options.ts";

/** Seconds of silence after which the remote host considers this program dead. Its actual death is noticed at once. */
const silenceSeconds = 60;
/** Maximum length in bytes of the path of a temporary directory in which ssh can create its socket. */
const longestParent = 50;

/** What a link needs. */
export interface LinkRequest extends CommandLineSessionRequest<SshExecutorOptions> {
  /** The working link: this one, or its successor if the connection broke. */
  readonly ready: () => Promise<SshLink>;
}

/** A connection to the remote host, and everything that uses it until it is closed or breaks. */
export class SshLink {
  readonly languages: PlaceLanguages;
  readonly files: RemoteFiles;
  readonly connection: SshConnection;
  readonly #parts: LinkParts;
  #blocks = 0;
  #fileCalls = 0;

  private constructor(request: LinkRequest, parts: LinkParts, connection: SshConnection) {
    const { options, table, givenLanguages, functionsModule } = request;
    this.connection = connection;
    this.#parts = parts;
    this.languages = findPlaceLanguages(table, givenLanguages, connection.greeting.inventory, {
      name: `the host ${options.host}`,
      remedy: "install it there, or put it on the PATH with `env`",
    });
    const caller = {
      host: options.host,
      call: async (words: readonly string[], quietMs: number) => {
        const link = await request.ready();
        return link.call({ name: `file${(link.#fileCalls += 1)}`, words, quietMs });
      },
    };
    this.files = new RemoteFiles(
      new SshFileAccess(caller),
      (file) => file.startsWith(parts.filePrefix) || file.startsWith(`node_modules/${functionsModule}/`),
    );
  }

  /**
   * Connects to the host, and creates the session's directory there.
   *
   * @throws BackendUnavailableError if the host cannot be reached or used.
   */
  static async open(request: LinkRequest, signal: AbortSignal): Promise<SshLink> {
    const parts = await makeParts(request.id);
    const { id, directory, mark, nonce, filePrefix } = parts;
    const { options, id: owner, functionsModule, table } = request;
    const supervisor = {
      id,
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
    };
    try {
      return new SshLink(request, parts, await SshConnection.open({ options, directory, mark, supervisor }, signal));
    } catch (error) {
      await removeParts(parts);
      throw error;
    }
  }

  /** The session's directory on the remote host. */
  get directory(): string {
    return this.connection.greeting.directory;
  }

  /** The Python interpreter there for programs of the session; `undefined` if there is none. */
  get python(): string | undefined {
    const { programs } = this.connection.greeting.inventory;
    return programs.get("python3") ?? programs.get("python");
  }

  /** The work directory there. */
  get workspace(): string {
    return this.connection.greeting.workspace;
  }

  /** The number of the next block. */
  nextBlock(): number {
    return (this.#blocks += 1);
  }

  /** A name for one of the session's own files in the work directory. */
  fileFor(block: number, extension: string): string {
    return `${this.#parts.filePrefix}${block}.${extension}`;
  }

  /**
   * Runs a block, or makes a file request.
   *
   * @throws BackendUnavailableError if the connection is gone.
   */
  call(request: CallRequest): RemoteCall {
    return new RemoteCall(this.connection, request);
  }

  /** Ends and deletes everything on both hosts. */
  async close(): Promise<void> {
    try {
      await this.connection.close();
    } finally {
      await removeParts(this.#parts);
    }
  }
}

/** The local parts of a connection. */
interface LinkParts {
  readonly id: string;
  readonly nonce: string;
  readonly filePrefix: string;
  readonly directory: string;
  readonly mark: { readonly name: string; readonly value: string };
  readonly leash: Leash;
}

async function makeParts(owner: string): Promise<LinkParts> {
  const id = randomUUID();
  const mark = { name: "FENCED_SSH", value: id };
  const directory = path.join(await parentDirectory(), `fenced-ssh-${id.slice(0, 8)}`);
  // Created before there is anything to delete, so that nothing is left behind whenever this program dies.
  const leash = new Leash({ mark, remove: [directory] });
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (cause) {
    await leash.release();
    throw new BackendUnavailableError(`A directory for the connection could not be created: ${String(cause)}`, {
      remedy: "Make sure that the temporary directory is writable and its disk is not full.",
      cause,
    });
  }
  return {
    id,
    nonce: randomUUID(),
    // Several sessions may share a work directory.
    filePrefix: `.fenced-${owner.slice(0, 8)}${id.slice(0, 4)}-`,
    directory,
    mark,
    leash,
  };
}

async function removeParts({ directory, leash }: LinkParts): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  await leash.release();
}

async function parentDirectory(): Promise<string> {
  const own = await realpath(tmpdir());
  return Buffer.byteLength(own) <= longestParent ? own : "/tmp";
}
