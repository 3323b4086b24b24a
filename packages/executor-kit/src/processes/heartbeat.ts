import { unwatched } from "@fenced/core/telemetry";

/** Options of `Heartbeat`. */
export interface HeartbeatOptions {
  /** The name of what is checked, for errors: `the Docker daemon`. */
  readonly name: string;
  /** Checks that it is alive. */
  readonly ping: () => Promise<unknown>;
  /** Milliseconds between two checks. */
  readonly tickMs: number;
  /** How many checks in a row may go unanswered. */
  readonly patience: number;
  /** Called once, if it stays silent or answers with an error twice in a row. */
  readonly onLost: (error: unknown) => void;
}

/**
 * Regularly checks that a daemon or a remote program is alive. One that hangs keeps its connections open, which would
 * make a block wait forever.
 *
 * Only checks that run on time count. If this program itself is late, because the machine is overloaded or was asleep,
 * the other program may be late too, or its answer may have arrived without having been read.
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
    this.#timer = unwatched(() => setInterval(() => this.#look(), options.tickMs)).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { name, tickMs, patience } = this.#options;
    const now = performance.now();
    const late = now - this.#last > 1.5 * tickMs;
    this.#last = now;
    if (!this.#asking) void this.#ask();
    else if (!late) this.#silent += 1;
    if (this.#silent < patience) return;
    this.#lost(new Error(`${name} has not answered for ${(this.#silent * tickMs) / 1000} s`));
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    try {
      await this.#options.ping();
      this.#failed = 0;
    } catch (error) {
      this.#failed += 1;
      // An idle connection may have been closed just now.
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
