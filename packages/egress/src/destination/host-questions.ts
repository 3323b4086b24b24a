import type { AllowedNetwork, UnknownHost } from "@fenced/core";
import { joinSignals, untilAborted } from "@fenced/core/abort";
import { Refusal } from "./refusal.ts";

/** Questions that may wait for their answers at the same time, and answers that are kept. */
const [mostOpen, mostAnswers] = [16, 1000];

/** A question that is not answered yet. */
interface Question {
  readonly answer: Promise<boolean>;
  /** Aborted when nobody waits for the answer. */
  readonly leaving: AbortController;
  waiting: number;
}

/** Asks about hosts that a policy does not list, and keeps the answers. */
export class HostQuestions {
  readonly #ask: NonNullable<AllowedNetwork["onUnknownHost"]>;
  readonly #patienceMs: number;
  readonly #answers = new Map<string, boolean>();
  readonly #open = new Map<string, Question>();

  /** @param patienceMs - milliseconds for which one connection waits for an answer. */
  constructor(ask: NonNullable<AllowedNetwork["onUnknownHost"]>, patienceMs: number) {
    this.#ask = ask;
    this.#patienceMs = patienceMs;
  }

  /**
   * Waits for the answer about a host, and asks if nobody has.
   *
   * @throws Refusal if it is not allowed, or cannot be asked about; the signal's reason.
   */
  async admit(host: UnknownHost, signal: AbortSignal): Promise<void> {
    if (!(this.#answers.get(keyOf(host)) ?? (await this.#answer(host, signal)))) {
      throw refused(host, "was asked about, and is not allowed");
    }
  }

  async #answer(host: UnknownHost, signal: AbortSignal): Promise<boolean> {
    const question = this.#open.get(keyOf(host)) ?? this.#begin(host);
    const isAbandoned = question.leaving.signal.aborted;
    question.waiting += 1;
    // A client that leaves is not always noticed: it may only have said everything.
    const patience = AbortSignal.timeout(this.#patienceMs);
    try {
      return await untilAborted(question.answer, joinSignals(signal, patience));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Refusal) throw error;
      // It was withdrawn because nobody waited any longer: that says nothing about this connection.
      if (isAbandoned && !patience.aborted) return await this.#answer(host, signal);
      throw refused(host, patience.aborted ? "was asked about, without an answer so far" : "could not be asked about");
    } finally {
      question.waiting -= 1;
      if (question.waiting === 0) question.leaving.abort(new DOMException("No connection waits", "AbortError"));
    }
  }

  #begin(host: UnknownHost): Question {
    if (this.#open.size >= mostOpen || this.#answers.size >= mostAnswers) {
      throw refused(host, "cannot be asked about: there are too many questions");
    }
    const [key, leaving] = [keyOf(host), new AbortController()];
    const ask = async (): Promise<boolean> => {
      try {
        // JavaScript callers may return anything.
        const isAllowed: unknown = await this.#ask({ host: host.host, port: host.port }, leaving.signal);
        this.#answers.set(key, isAllowed === true);
        return isAllowed === true;
      } finally {
        this.#open.delete(key);
      }
    };
    const question = { answer: Promise.resolve().then(ask), leaving, waiting: 0 };
    // It may be that nobody waits any longer.
    question.answer.catch(() => {});
    this.#open.set(key, question);
    return question;
  }
}

function keyOf({ host, port }: UnknownHost): string {
  return `${host} ${port}`;
}

function refused({ host, port }: UnknownHost, why: string): Refusal {
  return new Refusal(403, `port ${port} of ${host} is not in this executor's network policy: it ${why}`, true);
}
