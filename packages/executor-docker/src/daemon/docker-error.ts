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

/** Why a daemon cannot be reached over a network, with what a failed handshake means. */
export function connectionReason(error: unknown, protocol: string | undefined): string {
  const reason = dockerReason(error);
  const given = field(error, "code");
  const code = typeof given === "string" ? given : "";
  const broken = code === "ECONNRESET" || code === "EPIPE";
  if (protocol === "https" && (broken || code.startsWith("ERR_SSL_"))) {
    // OpenSSL names the place in its source as well.
    const said = /SSL routines:[^:]*:([^:]+):/.exec(reason)?.[1] ?? reason;
    return `it refused the TLS connection (${said}); see that cert.pem and key.pem are there, signed by its authority`;
  }
  if (/CERT|UNABLE_TO_|SELF_SIGNED/.test(code)) {
    return `its certificate is not accepted (${reason}); see that ca.pem is of the authority that signed it, for this name`;
  }
  if (protocol === "http" && broken) return `${reason}; if it speaks TLS, say where the certificates are`;
  return reason;
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
