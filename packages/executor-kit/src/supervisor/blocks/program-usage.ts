import type { RunUsage } from "@fenced/core";

/** The figures of `RunUsage` that say what programs used. */
export const programFigures: readonly ["processorMs", "peakMemoryBytes"] = ["processorMs", "peakMemoryBytes"];

/** What a program used, as far as that is known. */
export type ProgramUsage = Pick<RunUsage, (typeof programFigures)[number]>;

/** What the supervisor says of what a program used: microseconds of processor time, and bytes of memory; -1: not known. */
export function programUsage([microseconds = -1, bytes = -1]: readonly number[]): ProgramUsage {
  return {
    ...(microseconds >= 0 && { processorMs: microseconds / 1000 }),
    ...(bytes >= 0 && { peakMemoryBytes: bytes }),
  };
}
