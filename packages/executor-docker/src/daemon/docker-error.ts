import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";

/** What a daemon's answer or a broken connection says, in its own words. */
export function dockerReason(error: unknown): string {
  const json = field(error, "json");
  const said = field(json, "message") ?? field(json, "cause");
  if (typeof said === "string" && said !== "") return said.trim();
  if (error instanceof AggregateError) return error.errors.map(dockerReason).join(", ");
  return error instanceof Error ? error.message : String(error);
}

/** The HTTP status of a daemon's answer; `undefined` if it did not answer. */
export function statusCode(error: unknown): number | undefined {
  const code = field(error, "statusCode");
  return typeof code === "number" ? code : undefined;
}

/** True if a daemon says that a thing is not there. */
export function isNotFound(error: unknown): boolean {
  return statusCode(error) === 404;
}

/**
 * Waits for a daemon's answer, but not for ever.
 *
 * @throws BackendUnavailableError if none has come after `milliseconds`.
 */
export async function answered<T>(answer: Promise<T>, what: string, milliseconds = 60_000): Promise<T> {
  const settled = new AbortController();
  const late = sleep(milliseconds, undefined, { signal: settled.signal }).then(() => {
    throw new BackendUnavailableError(`The Docker daemon did not answer within ${milliseconds / 1000} s (${what})`, {
      remedy: "See whether the daemon is overloaded or stopped, and try again.",
    });
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    settled.abort();
    late.catch(() => {});
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
