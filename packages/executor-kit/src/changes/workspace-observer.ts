import type { BaseExecutorOptions } from "../base-executor-options.ts";
import type { Place } from "../place.ts";
import {
  byTheWay,
  notObservable,
  type ObservationLimits,
  ObservedWorkspace,
  whenAskedFor,
} from "./observed-workspace.ts";

/** Finds out what the runs of an executor change, as its options want it. */
export class WorkspaceObserver {
  /** `undefined`: nobody wants to know. */
  readonly #limits: ObservationLimits | undefined;
  readonly #isRequired: boolean;
  /** Looking at it takes too long for what nobody has asked for. */
  #isTooLarge = false;

  constructor({ changes, record, workDir }: BaseExecutorOptions & { readonly workDir?: unknown }) {
    const isWanted = changes ?? record !== undefined;
    if (isWanted) this.#limits = whenAskedFor;
    else if (changes === undefined && workDir !== undefined) this.#limits = byTheWay;
    this.#isRequired = changes === true;
  }

  /** It looks before and after each run. */
  get isOn(): boolean {
    return this.#limits !== undefined;
  }

  /** A run must not go on without this program, which could not look at its end. */
  get isAskedFor(): boolean {
    return this.#limits === whenAskedFor;
  }

  /** @throws InvalidInputError if `changes` was set and a place cannot say what changes. */
  assertPossible({ files }: Place): void {
    if (this.#isRequired && !files.tree) throw notObservable();
  }

  /** Looks at the workspace before a run; `undefined` if nobody wants to know, or the place cannot say it. */
  async look(place: Place, signal: AbortSignal): Promise<ObservedWorkspace | undefined> {
    const limits = this.#limits;
    if (!limits || !place.files.tree) return undefined;
    if (this.#isTooLarge) return ObservedWorkspace.unknown;
    const observed = await ObservedWorkspace.look(place, limits, signal);
    this.#isTooLarge = limits === byTheWay && observed === ObservedWorkspace.unknown;
    return observed;
  }
}
