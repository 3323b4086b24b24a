import { untilAborted } from "@fenced/core/abort";
import type { JupyterServer, ServerLease } from "./jupyter-server.ts";

/**
 * A server that this package starts and stops, for any number of executors: it starts with the first that needs it and
 * stops with the last one, or runs from its own `start()` to `stop()`. If it dies, the next call restarts it.
 */
export abstract class ManagedServer<Running> implements JupyterServer, AsyncDisposable {
  abstract readonly isolation: JupyterServer["isolation"];
  #current: Promise<Running> | undefined;
  #opened: Running | undefined;
  #closing: Promise<void> = Promise.resolve();
  /** One that died, whose files the next one takes over. */
  #left: Running | undefined;
  #users = 0;
  /** Whether it was started by itself: it then runs without users, until `stop()`. */
  #kept = false;

  /**
   * Starts the server, which then runs until `stop()`. Idempotent.
   *
   * @throws BackendUnavailableError if something that it needs is missing, or if it does not start; the message then
   * ends with its last lines of output.
   */
  async start(): Promise<void> {
    this.#kept = true;
    try {
      await this.#get();
    } catch (error) {
      this.#kept = false;
      throw error;
    }
  }

  /** Ends the server and all its kernels, even if they are in use. Idempotent; you may start it again. */
  async stop(): Promise<void> {
    this.#kept = false;
    await this.#shut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async acquire(signal?: AbortSignal): Promise<ServerLease> {
    signal?.throwIfAborted();
    this.#users += 1;
    const release = this.#releaseOnce();
    try {
      const running = await untilAborted(this.#get(), signal);
      return { ...this.lease(running), ended: () => this.whyEnded(running), release };
    } catch (error) {
      // A caller that gives up does not wait for the server to start and stop again.
      const released = release();
      if (signal?.aborted === true) released.catch(() => {});
      else await released;
      throw error;
    }
  }

  /**
   * Starts it. Never called while it runs.
   *
   * @param left - one that died and was closed; the new one has its files, unless this rejects.
   */
  protected abstract open(left: Running | undefined): Promise<Running>;

  /** Ends the server and its kernels. It may have ended already. */
  protected abstract close(running: Running): Promise<void>;

  /** Deletes the files on this host of a server that was closed. Default: there are none. */
  protected discard(_: Running): Promise<void> {
    return Promise.resolve();
  }

  /** Why it has ended, once it has. */
  protected abstract whyEnded(running: Running): string | undefined;

  /** What an executor needs to know about the server. */
  protected abstract lease(running: Running): Omit<ServerLease, "ended" | "release">;

  #releaseOnce(): () => Promise<void> {
    let released: Promise<void> | undefined;
    const release = async (): Promise<void> => {
      this.#users -= 1;
      if (this.#users === 0 && !this.#kept) await this.#shut();
    };
    return () => (released ??= release());
  }

  async #get(): Promise<Running> {
    if (this.#opened !== undefined && this.whyEnded(this.#opened) !== undefined) await this.#shut({ keepsFiles: true });
    this.#current ??= this.#begin();
    return this.#current;
  }

  #begin(): Promise<Running> {
    const current = this.#closing
      .catch(() => {})
      .then(() => this.open(this.#left))
      .then(
        (opened) => {
          this.#left = undefined;
          if (this.#current === current) this.#opened = opened;
          return opened;
        },
        (error: unknown) => {
          if (this.#current === current) this.#current = undefined;
          throw error;
        },
      );
    return current;
  }

  /** @param keepsFiles - executors have workspaces there, and use them with the next server. */
  #shut({ keepsFiles = false } = {}): Promise<void> {
    const current = this.#current;
    if (current) {
      this.#current = undefined;
      this.#opened = undefined;
      this.#closing = current.then(
        async (opened) => {
          this.#left = opened;
          await this.close(opened);
        },
        () => {},
      );
    }
    if (!keepsFiles) this.#closing = this.#discardAfter(this.#closing);
    return this.#closing;
  }

  async #discardAfter(closing: Promise<void>): Promise<void> {
    try {
      await closing;
    } finally {
      const left = this.#left;
      this.#left = undefined;
      if (left !== undefined) await this.discard(left);
    }
  }
}
