import type { CaseContext } from "./case-context.ts";

/** Returns why a case does not apply to the subject, or `undefined` if it does. */
export type Need = (kit: CaseContext) => string | undefined;

/** One requirement for an executor. */
export interface ConformanceCase {
  /** A sentence that states the requirement. */
  readonly name: string;
  /** What the executor must support for the case to apply. */
  readonly needs?: readonly Need[];
  /** Measures this process, or uses much of the machine: never runs alongside other cases. */
  readonly alone?: true;
  /** Throws if the requirement is not met. */
  run(kit: CaseContext): Promise<void>;
}

/** The cases about one subject. */
export interface ConformanceGroup {
  readonly name: string;
  /** Its cases mostly wait, and no two use the same executor at once: if the runner can, it runs them concurrently. */
  readonly waits?: true;
  readonly cases: readonly ConformanceCase[];
}
