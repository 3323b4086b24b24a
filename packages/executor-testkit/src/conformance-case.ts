import type { CaseContext } from "./case-context.ts";

/** Looks at the subject and says why a case does not apply to it; `undefined` if it does. */
export type Need = (kit: CaseContext) => string | undefined;

/** One thing that must hold for an executor. */
export interface ConformanceCase {
  /** A sentence that states what holds. */
  readonly name: string;
  /** What the executor must be or have for the case to apply. */
  readonly needs?: readonly Need[];
  /** Measures this process, or takes much of the machine: never runs beside other cases. */
  readonly alone?: true;
  /** Throws if it does not hold. */
  run(kit: CaseContext): Promise<void>;
}

/** The cases of one concern. */
export interface ConformanceGroup {
  readonly name: string;
  /** Its cases mostly wait, and no two have the same executor at once: where the runner can, they run side by side. */
  readonly waits?: true;
  readonly cases: readonly ConformanceCase[];
}
