import { randomUUID } from "node:crypto";
import { type CommandLineRequest, findPlaceLanguages, programsOf } from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  newAddress,
  requestedSettings,
  SentWorkspace,
  sessionToJson,
  SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { SshConnection } from "./connection/ssh-connection.ts";
import type { KeptSession, LeftRemote } from "./left-session.ts";
import type { SshExecutorOptions } from "./ssh-executor-options.ts";

interface SshRequest extends CommandLineRequest<SshExecutorOptions> {
  /** A session to connect to instead of creating the first one. */
  readonly left: LeftRemote | undefined;
}

const memorySentence =
  "\nThe block was killed, and the host has killed processes because it was out of memory. Process less data at a time.\n";

/**
 * The backend of a remote host. When the connection breaks, everything there ends, and a new connection starts afresh;
 * unless the session outlives its program.
 */
export function sshBackend(request: SshRequest): SupervisedBackend {
  const settings = { ...requestedSettings(request), network: undefined, memorySentence };
  return new SupervisedBackend(settings, new SshConnector(request));
}

/** Connects to the remote host. */
class SshConnector implements Connector {
  readonly #request: SshRequest;
  #isFirst = true;

  constructor(request: SshRequest) {
    this.#request = request;
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { options, id: owner, functionsModule, table, givenLanguages } = this.#request;
    const kept = this.#keep();
    const ownPrefix = `.fenced-${owner.slice(0, 8)}`;
    // Several sessions may share a work directory, also with what is left of a lost connection.
    const filePrefix = kept?.left?.filePrefix ?? `${ownPrefix}${randomUUID().slice(0, 4)}-`;
    const keepFiles = options.cleanupTempFiles === false;
    const own = { filePrefix, keepFiles, functionsModule };
    const session = { ...own, owner, programs: programsOf(table), path: options.env?.["PATH"] };
    const connection = await SshConnection.open({ options, session, kept }, signal);
    this.#isFirst = false;
    const { supervisor, inventory, place } = connection;
    const { workspace: path, python, directory } = place;
    return {
      runner: supervisor,
      languages: findPlaceLanguages(table, givenLanguages, inventory, {
        name: `the host ${options.host}`,
        remedy: "install it there, or put it on the PATH with `env`",
      }),
      // The functions' package is never listed.
      workspace: new SentWorkspace({ ...own, supervisor, python, path, ownPrefix, hasPackage: true }),
      directory,
      lost: connection.lost,
      isLosing: () => connection.isLosing,
      ...(kept && { session: sessionToJson({ id: owner, ...kept.address }, { ...place, filePrefix }) }),
      isLeft: kept?.left !== undefined,
      end: ({ isDetached }) => connection.close(isDetached),
    };
  }

  async close(): Promise<void> {
    // Everything ends with the connection, or by itself.
  }

  #keep(): KeptSession | undefined {
    const { keepAliveMs = 0 } = this.#request.options;
    if (keepAliveMs === 0) return undefined;
    const left = this.#isFirst ? this.#request.left : undefined;
    return { address: left ?? newAddress(), keepAliveMs, left };
  }
}
