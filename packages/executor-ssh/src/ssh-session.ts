import { ExecutorStoppedError } from "@fenced/core";
import { type BackendFiles, type CommandLineSessionRequest, RemoteFiles } from "@fenced/executor-kit";
import { requestedSettings, SupervisedFiles, SupervisedSession } from "@fenced/executor-kit/supervisor";
import type { SshExecutorOptions } from "./ssh-executor-options.ts";
import { ownFiles, SshPlace } from "./ssh-place.ts";

type SessionRequest = CommandLineSessionRequest<SshExecutorOptions>;

const memorySentence =
  "\nThe block was killed, and the host has killed processes because it was out of memory. Process less data at a time.\n";

/**
 * A started executor's session on the remote host. When the connection breaks, everything there ends; a new connection
 * starts afresh.
 */
export class SshSession extends SupervisedSession<SshPlace> {
  readonly #request: SessionRequest;
  /** The same for every place. */
  readonly #files: BackendFiles;

  private constructor(request: SessionRequest) {
    // Only the host knows its directories; see the overrides below.
    super({ ...requestedSettings(request), workspacePath: "", directory: "", network: undefined, memorySentence });
    this.#request = request;
    this.#files = this.#filesOf(request);
  }

  /**
   * Connects to the host.
   *
   * @throws BackendUnavailableError if it cannot be reached or used.
   */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<SshSession> {
    const session = new SshSession(request);
    try {
      await session.ready(signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  override get workspacePath(): string {
    return this.#place.workspace;
  }

  protected override get directory(): string {
    return this.#place.directory;
  }

  protected override claimFunctionsPackage(): void {
    // It is never listed.
  }

  protected override async openPlace(old: SshPlace | undefined, signal: AbortSignal): Promise<SshPlace> {
    // Nothing that blocks have started may see how the next one starts.
    await old?.end();
    return SshPlace.open({ ...this.#request, files: this.#files }, signal);
  }

  protected override async closeWith(place: SshPlace | undefined): Promise<void> {
    await place?.end();
  }

  get #place(): SshPlace {
    if (this.current) return this.current;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  #filesOf({ id, functionsModule }: SessionRequest): BackendFiles {
    const packages = `node_modules/${functionsModule}/`;
    const place = (): SshPlace => this.#place;
    const access = new SupervisedFiles({
      get workspace() {
        return place().workspace;
      },
      get python() {
        return place().python;
      },
      get filePrefix() {
        return place().filePrefix;
      },
      supervisor: async () => (await this.ready(this.closing)).runner,
    });
    return new RemoteFiles(access, (file) => file.startsWith(ownFiles(id)) || file.startsWith(packages));
  }
}
