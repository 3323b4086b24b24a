import { randomUUID } from "node:crypto";
import { type CommandLineRequest, findPlaceLanguages, programsOf } from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  requestedSettings,
  SentWorkspace,
  SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { SshConnection } from "./connection/ssh-connection.ts";
import type { SshExecutorOptions } from "./ssh-executor-options.ts";

type SshRequest = CommandLineRequest<SshExecutorOptions>;

const memorySentence =
  "\nThe block was killed, and the host has killed processes because it was out of memory. Process less data at a time.\n";

/** The backend of a remote host. When the connection breaks, everything there ends; a new connection starts afresh. */
export function sshBackend(request: SshRequest): SupervisedBackend {
  const settings = { ...requestedSettings(request), network: undefined, memorySentence };
  return new SupervisedBackend(settings, new SshConnector(request));
}

/** Connects to the remote host. */
class SshConnector implements Connector {
  readonly #request: SshRequest;

  constructor(request: SshRequest) {
    this.#request = request;
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { options, id: owner, functionsModule, table, givenLanguages } = this.#request;
    const ownPrefix = `.fenced-${owner.slice(0, 8)}`;
    // Several sessions may share a work directory, also with what is left of a lost connection.
    const filePrefix = `${ownPrefix}${randomUUID().slice(0, 4)}-`;
    const keepFiles = options.cleanupTempFiles === false;
    const own = { filePrefix, keepFiles, functionsModule };
    const session = { ...own, owner, programs: programsOf(table), path: options.env?.["PATH"] };
    const connection = await SshConnection.open({ options, session }, signal);
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
      end: () => connection.close(),
    };
  }

  async close(): Promise<void> {
    // Everything ends with the connection.
  }
}
