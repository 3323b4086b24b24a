import type { JupyterServer, ServerLease } from "./jupyter-server.ts";
import { SharedLife } from "./shared-life.ts";

/**
 * A server that this package starts and stops, for any number of executors: it starts with the first that needs it and
 * stops with the last one, or runs from its own `start()` to `stop()`. If it dies, the next call restarts it.
 */
export abstract class ManagedServer<Running> implements JupyterServer, AsyncDisposable {
  abstract readonly isolation: JupyterServer["isolation"];
  readonly #life: SharedLife<Running> = new SharedLife(
    () => this.open(),
    (running) => this.close(running),
    (running) => this.whyEnded(running) !== undefined,
  );

  /**
   * Starts the server, which then runs until `stop()`. Idempotent.
   *
   * @throws BackendUnavailableError if something that it needs is missing, or if it does not start; the message then
   * ends with its last lines of output.
   */
  async start(): Promise<void> {
    await this.#life.keep();
  }

  /** Ends the server and all its kernels, even if they are in use. Idempotent; you may start it again. */
  async stop(): Promise<void> {
    await this.#life.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async acquire(signal?: AbortSignal): Promise<ServerLease> {
    const { value, release } = await this.#life.use(signal);
    return { ...this.lease(value), ended: () => this.whyEnded(value), release };
  }

  /** Starts it. Never called while it runs. */
  protected abstract open(): Promise<Running>;

  /** Ends the server and deletes what it created. It may have ended already. */
  protected abstract close(running: Running): Promise<void>;

  /** Why it has ended, once it has. */
  protected abstract whyEnded(running: Running): string | undefined;

  /** What an executor needs to know about the server. */
  protected abstract lease(running: Running): Omit<ServerLease, "ended" | "release">;
}
