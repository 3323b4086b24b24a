import { abortable } from "./abortable.ts";

/** Makes work wait while it is closed. */
export class PauseGate {
  #open: (() => void) | undefined;
  #opened: Promise<void> | undefined;

  /** Closes the gate. */
  close(): void {
    this.#opened ??= new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  /** Opens the gate: waiting work continues. */
  open(): void {
    this.#open?.();
    this.#opened = undefined;
  }

  /** Waits while the gate is closed. Rejects with `signal.reason` after an abort. */
  async pass(signal: AbortSignal): Promise<void> {
    while (this.#opened !== undefined) await abortable(this.#opened, { signal, graceMs: 0 });
  }
}
