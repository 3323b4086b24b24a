import { unwatched } from "@fenced/core/telemetry";

/** Milliseconds between two looks. */
const tickMs = 1000;

/** What a heartbeat watches. */
export interface HeartbeatOptions {
  /** Asks the daemon whether it is there. */
  readonly ping: () => Promise<unknown>;
  /** Looks in a row, a second apart, that a daemon may leave an answer out. */
  readonly patience: number;
  /** Told once: the daemon is silent, or answers with an error twice in a row. */
  readonly onLost: (error: unknown) => void;
}

/**
 * Asks a daemon again and again whether it is there. One that hangs keeps its connections open, and would keep a block
 * waiting for ever.
 *
 * Only looks that come on time count: where this program itself gets its turn late, since the machine is overloaded or
 * was asleep, the daemon may be late too, and its answer may be here already, unread.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #timer: NodeJS.Timeout;
  #last = performance.now();
  #asking = false;
  #silent = 0;
  #failed = 0;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#timer = unwatched(() => setInterval(() => this.#look(), tickMs)).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    const late = now - this.#last > 1.5 * tickMs;
    this.#last = now;
    if (!this.#asking) void this.#ask();
    else if (!late) this.#silent += 1;
    if (this.#silent < this.#options.patience) return;
    this.#lost(new Error(`the Docker daemon has not answered for ${this.#silent} s`));
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    try {
      await this.#options.ping();
      this.#failed = 0;
    } catch (error) {
      this.#failed += 1;
      // A connection that waited to be used again may have been closed just then.
      if (this.#failed > 1) this.#lost(error);
    }
    this.#asking = false;
    this.#silent = 0;
  }

  #lost(error: unknown): void {
    this.stop();
    this.#options.onLost(error);
  }
}
