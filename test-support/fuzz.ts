import { assert, type IAsyncProperty, type IProperty } from "fast-check";

export * as fc from "fast-check";

/**
 * Checks a property with generated inputs: the same few in every run, so that a change never fails because of an input that it has
 * nothing to do with, and many others every night (`FENCED_SUITE=full`). What fails is shrunk to the smallest input, and reported
 * with the seed that repeats it.
 *
 * @param factor - of the number of runs: 300, every night 5,000. Below 1 for what takes long.
 */
export function fuzz<Inputs>(property: IProperty<Inputs>, factor?: number): void;
export function fuzz<Inputs>(property: IAsyncProperty<Inputs>, factor?: number): Promise<void>;
export function fuzz<Inputs>(property: IProperty<Inputs> | IAsyncProperty<Inputs>, factor = 1): unknown {
  if (process.env["FENCED_SUITE"] === "full") return assert(property, { numRuns: Math.ceil(5000 * factor) });
  return assert(property, { numRuns: Math.ceil(300 * factor), seed: 20 });
}

/** What a function returns, or the class of what it throws. */
export function outcomeOf<Value>(action: () => Value): Value | string {
  try {
    return action();
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}
