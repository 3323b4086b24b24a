import {
  type ExecutorCapabilities,
  type HostCallEvent,
  type HostFunction,
  InvalidInputError,
  type LeftRun,
  type RunEvent,
} from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import type { ExecutorFunctions } from "../functions/executor-functions.ts";
import type { HostChoice } from "../host-calls/host-calls.ts";
import { RunFunctions } from "../host-calls/run-functions.ts";
import type { LossReports } from "../loss-reports.ts";
import type { ListedRun, Place, PlaceRuns } from "../place.ts";
import type { Epoch } from "../session-life.ts";
import type { RunRecord } from "./kept-run.ts";

/** A run that goes on in the place. */
interface FollowedRun {
  readonly id: string;
  readonly runs: PlaceRuns;
  readonly number: number;
  readonly epoch: Epoch<Place>;
  /** The turn of a run in a stateful session: the function that ends it. */
  readonly turn: (() => void) | Promise<() => void> | undefined;
  /** The host functions that this program has for it. */
  readonly functions: HostChoice["functions"];
}

/** A block of such a run that may call host functions. */
interface CallingBlock {
  readonly runs: PlaceRuns;
  readonly number: number;
  readonly block: number;
  readonly offered: RunFunctions;
  readonly record: RunRecord;
}

interface KeptRunsSettings {
  readonly functions: ExecutorFunctions;
  readonly losses: LossReports;
  /** What the executor is designed to do. */
  readonly offered: () => ExecutorCapabilities;
}

/** The submitted runs of an executor with which its place goes on by itself, and what this program does for them. */
export class KeptRuns {
  readonly #settings: KeptRunsSettings;
  /** What this program has for runs that have not ended, by id. */
  readonly #functions = new Map<string, RunFunctions>();

  constructor(settings: KeptRunsSettings) {
    this.#settings = settings;
  }

  /**
   * Gives a run that has not ended host functions of this program, which may have other ones than the program that has
   * submitted it.
   *
   * @throws InvalidInputError if one of them needs approval, and there is none here.
   */
  offer(id: string, given: readonly HostFunction[]): void {
    const known = this.#functions.get(id);
    if (!known) return;
    const { functions, offered } = this.#settings;
    functions.choose(given, offered());
    known.offer(given);
  }

  /** Takes over the runs of earlier programs, which have their turns before all calls of this one. */
  adopt(runs: PlaceRuns, left: readonly ListedRun[], epoch: Epoch<Place>): LeftRun[] {
    const functions = this.#ownFunctions();
    const { stateful } = this.#settings.offered();
    return left.map(({ number, ...run }): LeftRun => {
      const turn = stateful && run.state === "running" ? epoch.turns.take(epoch.signal) : undefined;
      const followed = { id: run.id, runs, number, epoch, turn, functions };
      return { ...run, read: (cancelling) => this.follow(followed, cancelling) };
    });
  }

  /**
   * Yields the events of a run, whose turn ends with it, and answers its host calls.
   *
   * @param cancelling - ends the run.
   */
  async *follow(
    { id, runs, number, epoch, turn, functions }: FollowedRun,
    cancelling: AbortSignal | undefined,
  ): AsyncGenerator<RunEvent, void, void> {
    const taken = Promise.resolve(turn);
    taken.then((endTurn) => (endTurn ? runs.go(number) : undefined)).catch(() => {});
    const cancel = (): void => runs.cancel(number);
    cancelling?.addEventListener("abort", cancel, { once: true });
    if (cancelling?.aborted === true) cancel();
    const offered = new RunFunctions(functions);
    this.#functions.set(id, offered);
    const events = runs.read(number, {
      begun: (block, record) => this.#answerCalls({ runs, number, block, offered, record }),
    });
    try {
      for (;;) {
        const next = await untilAborted(events.next(), epoch.signal);
        if (next.done === true) return;
        const { event } = next.value;
        // Its own block has ended the interpreter; a run that ended before this program came says nothing of it.
        if (turn !== undefined && event.type === "result" && event.result.stateLost) this.#settings.losses.take();
        yield next.value;
      }
    } finally {
      cancelling?.removeEventListener("abort", cancel);
      taken.then((endTurn) => endTurn?.()).catch(() => {});
      this.#functions.delete(id);
      // What it waits for may never come.
      void events.return().catch(() => {});
    }
  }

  /** Answers the calls of a block's programs, also those that have waited for this program. */
  #answerCalls({ runs, number, block: index, offered, record }: CallingBlock): () => void {
    const { hostFunctions: names = [] } = record;
    if (names.length === 0) return () => {};
    const ending = new AbortController();
    const write = (event: HostCallEvent): Promise<void> => runs.note(number, { ...event, index }).catch(() => {});
    const ready = (name: string, signal: AbortSignal): Promise<void> => offered.ready(name, names, signal);
    const sink = { signal: ending.signal, write };
    const calls = this.#settings.functions.answer(offered.functions, { index, sink, ready });
    const leave = runs.serve(number, index, (call) => void calls.take(call));
    return () => {
      leave();
      calls.close();
      ending.abort(new DOMException("The block has ended", "AbortError"));
    };
  }

  /** This program's own functions, for runs of earlier ones. */
  #ownFunctions(): HostChoice["functions"] {
    const { functions, offered } = this.#settings;
    try {
      return functions.choose(undefined, offered()).functions;
    } catch (error) {
      // Without anything that approves calls, they wait for a program that has it.
      if (error instanceof InvalidInputError) return new Map();
      throw error;
    }
  }
}
