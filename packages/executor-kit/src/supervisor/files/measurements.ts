import { BackendUnavailableError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { Send } from "../blocks/running-programs.ts";

/** Time limit for a measurement in milliseconds; the supervisor itself gives up earlier. */
const measuringMs = 60_000;

/** What is measured, and how. */
interface MeasurementSettings<T> {
  /** The type of the frames that ask. */
  readonly type: number;
  /** The program with which the supervisor measures. */
  readonly program: string;
  /** Reads an answer. */
  readonly read: (answer: string) => T;
  /** What is measured, for errors: `The workspace`. */
  readonly what: string;
}

/** Measurements by a supervisor. */
export class Measurements<T> {
  readonly #send: Send;
  readonly #settings: MeasurementSettings<T>;
  readonly #waiting = new Map<number, (answer: { readonly value: T } | Error) => void>();
  #last = 0;

  /** @param send - sends a frame to the supervisor. */
  constructor(send: Send, settings: MeasurementSettings<T>) {
    this.#send = send;
    this.#settings = settings;
  }

  /**
   * Has the supervisor measure.
   *
   * @param before - precedes the program in the request.
   */
  async measure(before = ""): Promise<T> {
    const { type, program, what } = this.#settings;
    const number = (this.#last += 1);
    // The supervisor keeps the program that it gets with the first request.
    const source = number === 1 ? program : "";
    const answered = new Promise<{ readonly value: T } | Error>((resolve) => {
      this.#waiting.set(number, resolve);
    });
    this.#send(type, number, Buffer.from(`${before}${source}`));
    const answer = await within(measuringMs, answered).finally(() => this.#waiting.delete(number));
    if (answer === undefined) throw notMeasured(what);
    if (answer instanceof Error) throw answer;
    return answer.value;
  }

  /** Handles an answer of the supervisor. */
  report(number: number, payload: Buffer): void {
    this.#waiting.get(number)?.({ value: this.#settings.read(payload.toString("latin1")) });
  }

  /** Call this when the supervisor is gone. */
  fail(error: Error): void {
    for (const settle of this.#waiting.values()) settle(error);
  }
}

function notMeasured(what: string): BackendUnavailableError {
  return new BackendUnavailableError(`${what} was not measured within ${measuringMs / 1000} s`, {
    remedy: "Call restart(), which ends all processes there.",
  });
}
