import { BackendUnavailableError, FencedError } from "@fenced/core";
import { ServiceProblem } from "./answer-body.ts";
import type { ServiceAddress } from "./service-address.ts";

/** What an error of the service is about, for its remedy. */
type Subject = "creation" | "connection" | "pause";

/**
 * The error for something that the service did not do. Errors that are understandable already stay as they are.
 *
 * @param what - a clause: "The sandbox could not be created".
 */
export function serviceError(what: string, subject: Subject, { apiUrl }: ServiceAddress, cause: unknown): Error {
  if (FencedError.isInstance(cause)) return cause;
  const [remedy, option] = remedyFor(cause, subject, apiUrl);
  return new BackendUnavailableError(`${what}: ${reasonOf(cause)}`, {
    remedy,
    ...(option !== undefined && { option }),
    cause,
  });
}

function remedyFor(cause: unknown, subject: Subject, apiUrl: string): readonly [remedy: string, option?: string] {
  const status = cause instanceof ServiceProblem ? cause.status : undefined;
  if (status === undefined || status === 0) {
    return [`Check that ${apiUrl} is the service and can be reached.`, "apiUrl"];
  }
  if (status === 401 || status === 403) return [`Use an API key of ${apiUrl}.`, "apiKeyVariable"];
  if (status === 429) return ["Stop sandboxes that are no longer needed, or raise the service's limit."];
  if (status === 501) return ["This service cannot do that: leave out what the message names."];
  if (status >= 500) return ["Try again later; the message is the service's."];
  if (subject === "creation" && status === 404) return ["Use a template that the service has.", "template"];
  if (subject === "creation") {
    return ["If the time is too long, shorten `keepAliveMs`, which decides how long a sandbox may be left alone."];
  }
  return ["Create a new executor."];
}

/** What went wrong, in words. `fetch` hides it in the cause of its error. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return error.message === "fetch failed" && cause instanceof Error ? cause.message || String(cause) : error.message;
}
