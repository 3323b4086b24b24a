import { ServiceFailure } from "../service-failure.ts";
import { isObject } from "./api-request.ts";

/** Whom tokens must be made for. */
const audience = "https://dynamicsessions.io";

/** What `createToken` can be told. */
export interface TokenOptions {
  /** Default: `https://dynamicsessions.io`. */
  readonly audience?: string;
  /** Seconds until it expires; negative: it has expired already. Default: 3600. */
  readonly expiresInSeconds?: number;
}

/**
 * A token that an emulator accepts: a JSON web token without a signature. Emulators look at audience and time only.
 *
 * @example
 * const credential = { getToken: async () => ({ token: createToken(), expiresOnTimestamp: Date.now() + 3_600_000 }) };
 */
export function createToken(options: TokenOptions = {}): string {
  const expires = Math.floor(Date.now() / 1000) + (options.expiresInSeconds ?? 3600);
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  return `${encode({ alg: "none", typ: "JWT" })}.${encode({ aud: options.audience ?? audience, exp: expires })}.`;
}

/**
 * Checks the header `Authorization`.
 *
 * @param accepted - a token that is accepted whatever it says.
 * @throws ServiceFailure without a body, as the service's.
 */
export function checkAuthorization(header: string | undefined, accepted: string | undefined): void {
  const token = /^Bearer (\S+)$/i.exec(header ?? "")?.[1];
  if (token === undefined) throw unauthorized("The request has no bearer token");
  if (token === accepted) return;
  const claims = decode(token);
  if (!claims) throw unauthorized("The token is not a JSON web token");
  const audiences = Array.isArray(claims["aud"]) ? claims["aud"] : [claims["aud"]];
  const meant = audiences.some((each) => typeof each === "string" && each.replace(/\/$/, "") === audience);
  if (!meant) throw unauthorized("The audience is invalid");
  const expires = claims["exp"];
  if (typeof expires !== "number" || expires * 1000 <= Date.now()) throw unauthorized("The token is expired");
}

/** The refusal of a token. */
export function unauthorized(description: string): ServiceFailure {
  const challenge = `Bearer error="invalid_token", error_description="${description}"`;
  return new ServiceFailure(401, undefined, description, { "www-authenticate": challenge });
}

function decode(token: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return isObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}
