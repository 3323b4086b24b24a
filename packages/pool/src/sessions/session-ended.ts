import { ExecutorStoppedError } from "@fenced/core";

/** The error with which calls reject after the end of a session. */
export function endedBecause(why: string, cause?: unknown): ExecutorStoppedError {
  return new ExecutorStoppedError(`The session was ended: ${why}`, {
    remedy: "Run again to start a new one.",
    ...(cause === undefined ? {} : { cause }),
  });
}

/** With this, calls that have not begun reject in a session that goes on elsewhere; they find it again. */
export const movedOn: ExecutorStoppedError = endedBecause("it has moved to another process, or is kept");
