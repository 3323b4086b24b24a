import { BackendUnavailableError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { Send } from "../blocks/running-programs.ts";
import { measureProgram } from "../python-programs.ts";
import { frameType } from "../wire/wire.ts";

/** Time limit for a measurement in milliseconds; the supervisor itself gives up earlier. */
const measuringMs = 60_000;

/** Measurements of the work directory by its supervisor. */
export class Measurements {
  readonly #send: Send;
  readonly #waiting = new Map<number, (bytes: number | Error) => void>();
  #last = 0;

  /** @param send - sends a frame to the supervisor. */
  constructor(send: Send) {
    this.#send = send;
  }

  /** See `Supervisor.measure`. */
  async measure(atMost: number): Promise<number> {
    const number = (this.#last += 1);
    // The supervisor keeps the program that it gets with the first request.
    const source = number === 1 ? measureProgram : "";
    const answer = new Promise<number | Error>((resolve) => {
      this.#waiting.set(number, resolve);
    });
    this.#send(frameType.measure, number, Buffer.from(`${Math.min(atMost, Number.MAX_SAFE_INTEGER)}\0${source}`));
    const bytes = await within(measuringMs, answer).finally(() => this.#waiting.delete(number));
    if (typeof bytes === "number") return bytes;
    throw bytes ?? notMeasured();
  }

  /** Handles an answer of the supervisor. */
  report(number: number, payload: Buffer): void {
    this.#waiting.get(number)?.(Number(payload.toString("latin1")));
  }

  /** Call this when the supervisor is gone. */
  fail(error: Error): void {
    for (const settle of this.#waiting.values()) settle(error);
  }
}

function notMeasured(): BackendUnavailableError {
  return new BackendUnavailableError(`The workspace was not measured within ${measuringMs / 1000} s`, {
    remedy: "Call restart(), which ends all processes there.",
  });
}
