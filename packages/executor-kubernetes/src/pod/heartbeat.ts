import { unwatched } from "@fenced/core/telemetry";

/** Milliseconds between two looks. */
const tickMs = 5000;
/** Looks in a row that a supervisor may leave an answer out. */
const patience = 4;

/**
 * Asks a supervisor again and again whether it is there, so that its pod knows that this program is, and so that a connection that
 * leads nowhere does not keep a block waiting.
 *
 * Only looks that come on time count: where this program itself gets its turn late, since the machine is overloaded or was asleep,
 * the answer may be here already, unread.
 */
export class Heartbeat {
  readonly #timer: NodeJS.Timeout;
  readonly #ping: () => Promise<void>;
  readonly #onLost: (reason: string) => void;
  #last = performance.now();
  #asking = false;
  #silent = 0;

  /** @param onLost - told once: the supervisor is silent. */
  constructor(ping: () => Promise<void>, onLost: (reason: string) => void) {
    this.#ping = ping;
    this.#onLost = onLost;
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
    if (this.#silent < patience) return;
    this.stop();
    this.#onLost(`it has not answered for ${(this.#silent * tickMs) / 1000} s`);
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    try {
      await this.#ping();
    } catch {
      // The supervisor is lost, which is known.
    }
    this.#asking = false;
    this.#silent = 0;
  }
}
