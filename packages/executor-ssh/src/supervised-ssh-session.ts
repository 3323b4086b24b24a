import { BackendUnavailableError } from "@fenced/core";
import { longestTimer } from "@fenced/core/abort";
import type { BlockEvent, BlockOutcome, FunctionPlaces, ProgramRun } from "@fenced/executor-kit";
import { SupervisedSession } from "@fenced/executor-kit/supervisor";
import { SshPlace } from "./ssh-place.ts";
import type { SessionRequest, SshSession } from "./ssh-session.ts";

/**
 * A session whose blocks are run by a supervisor on the remote host. It is a Python program that can keep interpreters
 * waiting for blocks, or alive between them. The connection and the files are those of another session.
 */
export class SupervisedSshSession extends SupervisedSession<SshPlace> {
  readonly #connected: SshSession;
  readonly #request: SessionRequest;
  #places = 0;

  private constructor(connected: SshSession, request: SessionRequest) {
    const { id, options, functions, onReplaced, onLost } = request;
    const { env = {}, warm, stateful = false } = options;
    const places = { workspacePath: connected.workspacePath, directory: connected.directory };
    super({ id, env, functions, warm, stateful, ...places, network: undefined, memorySentence, onReplaced, onLost });
    this.#connected = connected;
    this.#request = request;
  }

  /**
   * Starts the supervisor.
   *
   * @param connected - closed together with this session, or if it does not open.
   * @throws BackendUnavailableError if it does not start.
   */
  static async open(
    connected: SshSession,
    request: SessionRequest,
    signal: AbortSignal,
  ): Promise<SupervisedSshSession> {
    const session = new SupervisedSshSession(connected, request);
    try {
      await session.ready(signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  override get workspacePath(): string {
    return this.#connected.workspacePath;
  }

  override functionPlaces(): Required<Omit<FunctionPlaces, "owner">> {
    return this.#connected.functionPlaces();
  }

  override run(...block: Parameters<SupervisedSession["run"]>): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    return keepingAlive(super.run(...block));
  }

  override runProgram(program: ProgramRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    return keepingAlive(super.runProgram(program));
  }

  /** Ends the supervisor, and with it everything that blocks have started, whatever they did to it. */
  override async reset(signal: AbortSignal): Promise<void> {
    await this.current?.end().catch(() => {});
    await this.ready(signal);
  }

  protected override async openPlace(old: SshPlace | undefined, signal: AbortSignal): Promise<SshPlace> {
    // Nothing that blocks have started may see how the next one starts.
    await old?.end().catch(() => {});
    const link = await this.#connected.ready(signal);
    const { options } = this.#request;
    if (link.python === undefined) throw noPython(options.host);
    return SshPlace.open(link, options, `supervisor${(this.#places += 1)}`, signal);
  }

  protected override async closeWith(place: SshPlace | undefined): Promise<void> {
    place?.leave();
    await this.#connected.close();
  }

  protected override claimFunctionsPackage(): void {
    // It is never listed.
  }
}

const memorySentence =
  "\nThe block was killed, and the host has killed processes because it was out of memory. Process less data at a time.\n";

/** Keeps this program alive while something runs, since the connection alone does not. */
async function* keepingAlive<Event, Outcome>(
  events: AsyncGenerator<Event, Outcome, void>,
): AsyncGenerator<Event, Outcome, void> {
  const held = setInterval(() => {}, longestTimer);
  try {
    return yield* events;
  } finally {
    clearInterval(held);
  }
}

function noPython(host: string): BackendUnavailableError {
  return new BackendUnavailableError(`There is no Python on ${host}`, {
    remedy: "Install python3 there, or leave out `warm` and `stateful`.",
  });
}
