import { untilAborted } from "@fenced/core/abort";

/** A resource that is open from its first to its last user. */
export class SharedLife<T> {
  readonly #open: () => Promise<T>;
  readonly #close: (opened: T) => Promise<void>;
  readonly #hasEnded: (opened: T) => boolean;
  #current: Promise<T> | undefined;
  #opened: T | undefined;
  #closing: Promise<void> = Promise.resolve();
  #users = 0;
  #kept = false;

  /** @param hasEnded - whether it has ended on its own; if so, the next user reopens it. */
  constructor(open: () => Promise<T>, close: (opened: T) => Promise<void>, hasEnded: (opened: T) => boolean) {
    this.#open = open;
    this.#close = close;
    this.#hasEnded = hasEnded;
  }

  /** Keeps it open without users, until `end`. */
  async keep(): Promise<T> {
    this.#kept = true;
    try {
      return await this.#get();
    } catch (error) {
      this.#kept = false;
      throw error;
    }
  }

  /** Closes it, even while it is in use. */
  async end(): Promise<void> {
    this.#kept = false;
    await this.#shut();
  }

  /** Opens it, or joins its other users. The caller must call `release`. */
  async use(signal?: AbortSignal): Promise<{ readonly value: T; readonly release: () => Promise<void> }> {
    signal?.throwIfAborted();
    this.#users += 1;
    const release = this.#releaseOnce();
    try {
      return { value: await (signal ? untilAborted(this.#get(), signal) : this.#get()), release };
    } catch (error) {
      // A caller that gives up does not wait for the resource to open and close again.
      const released = release();
      if (signal?.aborted === true) released.catch(() => {});
      else await released;
      throw error;
    }
  }

  #releaseOnce(): () => Promise<void> {
    let released: Promise<void> | undefined;
    const release = async (): Promise<void> => {
      this.#users -= 1;
      if (this.#users === 0 && !this.#kept) await this.#shut();
    };
    return () => (released ??= release());
  }

  async #get(): Promise<T> {
    if (this.#opened !== undefined && this.#hasEnded(this.#opened)) await this.#shut();
    this.#current ??= this.#begin();
    return this.#current;
  }

  #begin(): Promise<T> {
    const current = this.#closing
      .catch(() => {})
      .then(() => this.#open())
      .then(
        (opened) => {
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

  #shut(): Promise<void> {
    const current = this.#current;
    if (current) {
      this.#current = undefined;
      this.#opened = undefined;
      this.#closing = current.then(
        (opened) => this.#close(opened),
        () => {},
      );
    }
    return this.#closing;
  }
}
