import { BackendUnavailableError } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import { type BackendFiles, type BlockRun, blockSource, type PlaceLanguages } from "@fenced/executor-kit";
import {
  type BlockFile,
  connectSupervisor,
  type SupervisedPlace,
  type Supervisor,
} from "@fenced/executor-kit/supervisor";
import { noSsh } from "./connection/ssh-error.ts";
import type { SshProcess } from "./connection/ssh-process.ts";
import { untilGreeting } from "./connection/until-greeting.ts";
import { blockSupervisorFor } from "./remote/remote-program.ts";
import { callEnvironment, type SshExecutorOptions } from "./ssh-executor-options.ts";
import type { SshLink } from "./ssh-link.ts";

/** Time limit for the supervisor to answer in milliseconds. */
const openingMs = 30_000;

/**
 * A supervisor of blocks on the remote host, over one long session of a connection, with everything that blocks find there.
 * If code kills or stops the supervisor, everything that blocks have started ends with it.
 */
export class SshPlace implements SupervisedPlace {
  readonly runner: Supervisor;
  readonly languages: PlaceLanguages;
  readonly files: BackendFiles;
  readonly #link: SshLink;
  readonly #options: SshExecutorOptions;
  readonly #name: string;
  readonly #process: SshProcess;
  #lost: Error | undefined;
  #ended: Promise<void> | undefined;
  /** Resolves when the supervisor is lost, to a sentence; to `undefined` if its session or connection ended first. */
  readonly #loss: Promise<string | undefined>;

  private constructor(link: SshLink, options: SshExecutorOptions, name: string, started: StartedSupervisor) {
    this.#link = link;
    this.#options = options;
    this.#name = name;
    this.#process = started.process;
    this.runner = started.supervisor;
    this.languages = link.languages;
    this.files = link.files;
    this.#loss = started.lost.then((error) => this.#lose(error));
    // The connection alone does not keep Node alive.
    this.#process.unref();
  }

  /**
   * Starts a supervisor.
   *
   * @param name - must be unique for each supervisor.
   * @throws BackendUnavailableError if it does not start, or the connection is gone; `signal.reason` if it is aborted first.
   */
  static async open(link: SshLink, options: SshExecutorOptions, name: string, signal: AbortSignal): Promise<SshPlace> {
    return new SshPlace(link, options, name, await startSupervisor(link, { options, name }, signal));
  }

  get lost(): Error | undefined {
    return this.#lost ?? this.#link.connection.lost;
  }

  /**
   * The variables, with the host's `PATH` as the default.
   *
   * @throws InvalidInputError if a shell could not set one of them.
   */
  variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    checkOptions(callEnvironment, { env: given }, "executeCodeBlocks");
    return { PATH: this.#link.connection.greeting.path, ...given };
  }

  async writeBlock({ language, code, filename }: BlockRun, extension: string): Promise<BlockFile> {
    const { workspace, files } = this.#link;
    const content = blockSource(language, code);
    if (filename !== undefined) {
      await files.write(filename, content);
      return { path: `${workspace}/${filename}` };
    }
    const name = this.#link.fileFor(this.#link.nextBlock(), extension);
    const keep = this.#options.cleanupTempFiles === false;
    return { path: `${workspace}/${name}`, sent: { name, content, keep } };
  }

  async settle(): Promise<undefined> {
    // The supervisor has removed the block's file.
  }

  whenLost(action: (reason: string) => void): void {
    void this.#loss.then((reason) => {
      if (reason !== undefined) action(reason);
    });
  }

  /**
   * Ends the supervisor, and everything that blocks have started.
   *
   * @throws BackendUnavailableError if the connection is gone, which ends them as well.
   */
  end(): Promise<void> {
    this.#ended ??= this.#end(new Error("The session was ended"));
    return this.#ended;
  }

  /** The connection is about to be closed, which ends everything. */
  leave(): void {
    this.#ended ??= Promise.resolve();
  }

  async #end(reason: Error): Promise<void> {
    this.#lost = reason;
    const { connection } = this.#link;
    try {
      await connection.kill(this.#name);
    } finally {
      this.runner.fail(connection.lost ?? reason);
      this.#process.kill();
    }
  }

  async #lose({ message }: Error): Promise<string | undefined> {
    if (this.#ended) return undefined;
    const problem = `The supervisor on ${this.#options.host} was lost: ${message}`;
    const remedy = "Call again to start a new one. If it happens again, check what kills programs of that account.";
    this.#ended = this.#end(new BackendUnavailableError(problem, { remedy }));
    // If it fails, the connection is gone, which is reported by the connection.
    return this.#ended.then(
      () => problem,
      () => undefined,
    );
  }
}

interface StartedSupervisor {
  readonly supervisor: Supervisor;
  readonly process: SshProcess;
  /** Resolves to the reason when nothing more arrives from it. */
  readonly lost: Promise<Error>;
}

async function startSupervisor(
  { connection, workspace, directory }: SshLink,
  { options: { env = {}, host }, name }: { readonly options: SshExecutorOptions; readonly name: string },
  signal: AbortSignal,
): Promise<StartedSupervisor> {
  const greeting = `fenced-${name}-${connection.nonce}`;
  const place = { directory: `${directory}/${name}`, workspace, path: env["PATH"] };
  const { content, ...program } = blockSupervisorFor(greeting, place);
  const process = connection.run(name, program);
  const { child } = process;
  const late = setTimeout(process.kill, openingMs);
  try {
    child.on("error", (error) => child.stdout.destroy(noSsh(error)));
    child.stdin.write(content);
    child.stdin.uncork();
    const said = await untilAborted(untilGreeting(child.stdout, `${greeting} `), signal);
    connection.tellLeader(name, Number(said));
    let onLost: (error: Error) => void = () => {};
    const lost = new Promise<Error>((resolve) => {
      onLost = resolve;
    });
    const answer = connectSupervisor(child, { signal, onLost });
    child.stdout.resume();
    const { supervisor } = await answer;
    if (!supervisor) throw new Error("something answered that is not the supervisor");
    return { supervisor, process, lost };
  } catch (cause) {
    process.kill();
    signal.throwIfAborted();
    // Fails if the connection is gone, with the reason.
    await connection.kill(name);
    throw notStarted(host, cause, process.said());
  } finally {
    clearTimeout(late);
  }
}

function notStarted(host: string, cause: unknown, said: string): BackendUnavailableError {
  const reason = `${cause instanceof Error ? cause.message : String(cause)} ${said.trim()}`.trim();
  return new BackendUnavailableError(`The supervisor could not be started on ${host}: ${reason}`, {
    remedy:
      "Install Python 3.8 or later there, and let sshd allow one more session (MaxSessions); or leave out `warm` and `stateful`.",
    cause,
  });
}
