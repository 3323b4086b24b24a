import {
  type ExecutorCapabilities,
  ExecutorStoppedError,
  type HostCallEvent,
  type HostFunction,
  InvalidInputError,
  type LeftRun,
  type RunEvent,
} from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { unwatched } from "@fenced/core/telemetry";
import type { ExecutorFunctions } from "../functions/executor-functions.ts";
import type { HostChoice } from "../host-calls/host-calls.ts";
import { RunFunctions } from "../host-calls/run-functions.ts";
import type { LossReports } from "../loss-reports.ts";
import type { ListedRun, Place, PlaceRuns } from "../place.ts";
import type { Epoch } from "../session-life.ts";
import type { ExecutorTelemetry } from "../telemetry/executor-telemetry.ts";
import type { SubmittedRunTelemetry } from "../telemetry/submitted-run-telemetry.ts";
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
  /** Watches it. Default: nobody does. */
  readonly watched: SubmittedRunTelemetry | undefined;
}

/** A block of such a run that may call host functions. */
interface CallingBlock {
  readonly runs: PlaceRuns;
  readonly number: number;
  readonly block: number;
  readonly offered: RunFunctions;
  readonly record: RunRecord;
  /** Runs its argument with the block's span as the active one. */
  readonly within: <T>(action: () => T) => T;
}

interface KeptRunsSettings {
  readonly functions: ExecutorFunctions;
  readonly losses: LossReports;
  readonly telemetry: ExecutorTelemetry;
  /** What the executor is designed to do. */
  readonly offered: () => ExecutorCapabilities;
}

/** The submitted runs of an executor with which its place goes on by itself, and what this program does for them. */
export class KeptRuns {
  readonly #settings: KeptRunsSettings;
  readonly #watched = new Set<SubmittedRunTelemetry>();
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

  /** This program lets go of the session, in which its runs go on. */
  leave(): void {
    for (const each of this.#watched) each.leave();
  }

  /** Takes over the runs of earlier programs, which have their turns before all calls of this one. */
  adopt(runs: PlaceRuns, left: readonly ListedRun[], epoch: Epoch<Place>): LeftRun[] {
    const functions = this.#ownFunctions();
    const { telemetry, offered } = this.#settings;
    const { stateful } = offered();
    return left.map(({ number, ...run }): LeftRun => {
      const turn = stateful && run.state === "running" ? epoch.turns.take(epoch.signal) : undefined;
      // It is no part of what this program does now.
      const watch = (): SubmittedRunTelemetry | undefined => telemetry.beginRun(undefined, run.lastSeq);
      const watched = run.state === "running" ? unwatched(watch) : undefined;
      const followed = { id: run.id, runs, number, epoch, turn, functions, watched };
      return { ...run, read: (cancelling) => this.follow(followed, cancelling) };
    });
  }

  /**
   * Yields the events of a run, whose turn ends with it, and answers its host calls.
   *
   * @param cancelling - ends the run.
   */
  async *follow(
    { id, runs, number, epoch, turn, functions, watched }: FollowedRun,
    cancelling: AbortSignal | undefined,
  ): AsyncGenerator<RunEvent, void, void> {
    const taken = Promise.resolve(turn);
    taken.then((endTurn) => (endTurn ? runs.go(number) : undefined)).catch(() => {});
    const cancel = (): void => runs.cancel(number);
    cancelling?.addEventListener("abort", cancel, { once: true });
    if (cancelling?.aborted === true) cancel();
    if (watched) this.#watched.add(watched);
    const offered = new RunFunctions(functions);
    this.#functions.set(id, offered);
    const events = runs.read(number, {
      begun: (block, record, seq) => {
        const code = record.blocks[block] ?? { language: "", code: "" };
        const within = watched?.begin(code, block, seq) ?? ((action) => action());
        return this.#answerCalls({ runs, number, block, offered, record, within });
      },
    });
    try {
      for (;;) {
        const next = await untilAborted(events.next(), epoch.signal);
        if (next.done === true) return;
        const { event } = next.value;
        // Its own block has ended the interpreter; a run that ended before this program came says nothing of it.
        if (turn !== undefined && event.type === "result" && event.result.stateLost) this.#settings.losses.take();
        watched?.follow(next.value);
        yield next.value;
      }
    } catch (error) {
      // Another program has taken the session over, where the run goes on.
      if (!epoch.signal.aborted && ExecutorStoppedError.isInstance(error)) watched?.leave();
      watched?.fail(error);
      throw error;
    } finally {
      if (watched) this.#watched.delete(watched);
      cancelling?.removeEventListener("abort", cancel);
      taken.then((endTurn) => endTurn?.()).catch(() => {});
      this.#functions.delete(id);
      // What it waits for may never come.
      void events.return().catch(() => {});
    }
  }

  /** Answers the calls of a block's programs, also those that have waited for this program. */
  #answerCalls({ runs, number, block: index, offered, record, within }: CallingBlock): () => void {
    const { hostFunctions: names = [] } = record;
    if (names.length === 0) return () => {};
    const ending = new AbortController();
    const write = (event: HostCallEvent): Promise<void> => runs.note(number, { ...event, index }).catch(() => {});
    const ready = (name: string, signal: AbortSignal): Promise<void> => offered.ready(name, names, signal);
    const sink = { signal: ending.signal, write };
    const calls = this.#settings.functions.answer(offered.functions, { index, sink, ready });
    const leave = runs.serve(number, index, (call) => void within(() => calls.take(call)));
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
