import { InvalidInputError } from "@fenced/core";

/** A skill that is not accepted as it is now. */
export function refused(problem: string, remedy: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(problem, { remedy, ...(cause === undefined ? {} : { cause }) });
}
