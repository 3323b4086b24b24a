import { setTimeout as sleep } from "node:timers/promises";
import { InvalidInputError, type WorkspaceChanges } from "@fenced/core";
import { afterMs, followSignals, untilAborted } from "@fenced/core/abort";
import { findTree, type FoundTree } from "../checkpoints/list-tree.ts";
import type { Place } from "../place.ts";
import { compareTrees, unknownChanges } from "./compare-trees.ts";

/** How much of a workspace to look at before and after a run. */
export interface ObservationLimits {
  /** Maximum number of files, directories and links. */
  readonly most: number;
  /** Time for each look in milliseconds. */
  readonly timeMs: number;
  /** How long to wait until a change of a file that has just been changed shows, in milliseconds. */
  readonly settleMs: number;
}

/** What was asked for. */
export const whenAskedFor: ObservationLimits = { most: 500_000, timeMs: 60_000, settleMs: Infinity };
/** What must hardly be felt, since nobody asked for it. A tick of Linux takes at most 10 ms. */
export const byTheWay: ObservationLimits = { most: 1000, timeMs: 250, settleMs: 20 };
/** Clocks of file systems whose ticks take longer show whole seconds, in milliseconds. */
const longestTick = 100;

/** A workspace as it was before a run. */
export class ObservedWorkspace {
  readonly #limits: ObservationLimits;
  /** `undefined`: it could not be looked at. */
  readonly #before: FoundTree | undefined;

  /** One that could not be looked at. */
  static readonly unknown: ObservedWorkspace = new ObservedWorkspace(byTheWay, undefined);

  private constructor(limits: ObservationLimits, before: FoundTree | undefined) {
    this.#limits = limits;
    this.#before = before;
  }

  /**
   * Looks at a workspace, and waits, if a file has just been changed, until any later change shows. Where that takes too long, it is
   * as if it could not be looked at.
   *
   * @throws the signal's reason once it is aborted.
   */
  static async look(place: Place, limits: ObservationLimits, signal: AbortSignal): Promise<ObservedWorkspace> {
    const before = await find(place, limits, [signal]);
    signal.throwIfAborted();
    if (!before || before.isCut) return ObservedWorkspace.unknown;
    const settlesIn = before.entries.reduce(
      (most, { type, settlesIn: ms = 0 }) => (type === "directory" ? most : Math.max(most, ms)),
      0,
    );
    if (settlesIn === 0) return new ObservedWorkspace(limits, before);
    if (settlesIn > longestTick && settlesIn > limits.settleMs) return ObservedWorkspace.unknown;
    await untilAborted(sleep(Math.min(settlesIn, limits.settleMs)), signal);
    return new ObservedWorkspace(limits, before);
  }

  /**
   * Says how it differs now. Never throws, since what is lost with that is worth less than a result.
   *
   * @param signals - end the look.
   */
  async changes(place: Place | undefined, signals: readonly (AbortSignal | undefined)[]): Promise<WorkspaceChanges> {
    const after = this.#before && place ? await find(place, this.#limits, signals) : undefined;
    if (!this.#before || !after) return unknownChanges;
    return compareTrees(this.#before, after, place?.facts.workspacePath);
  }
}

/** @returns `undefined` if it cannot be looked at, or not in time. */
async function find(
  { files: { tree } }: Place,
  { most, timeMs }: ObservationLimits,
  signals: readonly (AbortSignal | undefined)[],
): Promise<FoundTree | undefined> {
  if (!tree) return undefined;
  const ending = new AbortController();
  const unfollow = followSignals(ending, signals);
  const lift = afterMs(timeMs, () => ending.abort(new Error("Looking at the workspace took too long")));
  try {
    return await untilAborted(findTree(tree, { signal: ending.signal, most }), ending.signal);
  } catch {
    return undefined;
  } finally {
    lift();
    unfollow();
  }
}

/** The error for an executor that cannot say what changed. */
export function notObservable(): InvalidInputError {
  return new InvalidInputError("This executor cannot know which files change in its workspace", {
    remedy: 'Leave `changes` out, or use an executor whose `capabilities.files` has "trees".',
  });
}
