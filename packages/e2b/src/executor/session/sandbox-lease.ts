import { unwatched } from "@fenced/core/telemetry";
import { type ControlClient, isGone } from "../service/control-client.ts";

/** Milliseconds that a sandbox lives on when nobody asks for more: at least this, and so much longer than its session. */
const [shortestMs, spareMs] = [120_000, 60_000];
/** Milliseconds between two renewals. */
const renewalMs = 30_000;

/** How long a sandbox is asked for at a time, if its session waits for so many milliseconds for a program. */
export function leaseMs(keepAliveMs: number): number {
  return Math.max(shortestMs, keepAliveMs + spareMs);
}

/**
 * Keeps the service from ending a sandbox as long as this program is alive. If the program dies, the service ends the
 * sandbox when its time is over, so that none is left behind.
 */
export class SandboxLease {
  readonly #timer: NodeJS.Timeout;
  readonly #ending = new AbortController();

  /** @param onGone - called once if there is no such sandbox any more. */
  constructor(control: ControlClient, id: string, timeoutMs: number, onGone: () => void) {
    const renew = (): void => {
      control.setTimeout(id, timeoutMs, this.#ending.signal).catch((error: unknown) => {
        // Whatever else it is may pass.
        if (!isGone(error) || this.#ending.signal.aborted) return;
        this.end();
        onGone();
      });
    };
    this.#timer = unwatched(() => setInterval(renew, renewalMs)).unref();
    // A program that has left it may have asked for less.
    renew();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#ending.abort();
  }
}
