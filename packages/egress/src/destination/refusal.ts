/** Why a request is refused, in words for the code that made it. */
export class Refusal extends Error {
  /** The status of an answer over HTTP. */
  readonly status: number;
  /** True if the policy refused it; false if it was allowed and failed. */
  readonly denied: boolean;

  constructor(status: number, reason: string, denied = false) {
    super(reason);
    this.status = status;
    this.denied = denied;
  }
}

/** A client's text, made safe for one line of a header. */
export function printable(text: string): string {
  return text.replaceAll(/[^\x21-\x7e]/g, "?").slice(0, 300);
}

/** An error's code, such as `ECONNREFUSED`; never its message, which may name more than the code should know. */
export function errorCode(error: unknown): string {
  const code: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" && /^[A-Z\d_]{1,60}$/.test(code) ? code : "no reason given";
}
