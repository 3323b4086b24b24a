import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { ServiceFailure } from "../service-failure.ts";
import { isObject } from "./api-request.ts";

/** The audience that tokens must have. */
const audience = "https://dynamicsessions.io";

/** The claims of a token. */
export interface TokenOptions {
  /** Default: `https://dynamicsessions.io`. */
  readonly audience?: string | undefined;
  /** Milliseconds until it expires; negative if it has expired already. Default: 3,600,000. */
  readonly expiresInMs?: number | undefined;
}

/**
 * Decides who may call the emulator, which runs code as its user: clients that have a token signed by it and use one
 * of its own names. A page in a browser has neither, even if its own name resolves to this machine (DNS rebinding).
 */
export class AccessGuard {
  readonly #names: ReadonlySet<string>;
  readonly #accepted: Buffer | undefined;
  readonly #key: Buffer = randomBytes(32);

  constructor({ names, token }: { readonly names: readonly string[]; readonly token: string | undefined }) {
    this.#names = new Set(["localhost", "127.0.0.1", "[::1]", ...names].map(hostnameOf));
    this.#accepted = token === undefined ? undefined : digest(token);
  }

  /** A JSON web token that only this emulator accepts. */
  token(options: TokenOptions = {}): string {
    const expires = Math.floor((Date.now() + (options.expiresInMs ?? 3_600_000)) / 1000);
    const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
    const claims = { aud: options.audience ?? audience, exp: expires };
    const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
    return `${signed}.${this.#signature(signed).toString("base64url")}`;
  }

  /** @throws ServiceFailure if the request comes from another site's page, or uses another host name. */
  checkNames({ host, origin }: IncomingHttpHeaders): void {
    if (!this.#isOurs(`http://${host ?? ""}`)) {
      throw new ServiceFailure(403, "HostNotAllowed", "Host not allowed; add it with --allow-host.");
    }
    if (origin !== undefined && !this.#isOurs(origin)) {
      throw new ServiceFailure(403, "OriginNotAllowed", "Pages of other sites may not call this server.");
    }
  }

  /** @throws ServiceFailure without a body, like the service's, if the token is not from this emulator. */
  checkToken({ authorization }: IncomingHttpHeaders): void {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) throw unauthorized("The request has no bearer token");
    // Digests have the same length, and comparing them reveals nothing about the token.
    if (this.#accepted && timingSafeEqual(digest(token), this.#accepted)) return;
    const claims = this.#claims(token);
    if (!claims) throw unauthorized("The token was not issued by this emulator");
    if (claims["aud"] !== audience && claims["aud"] !== `${audience}/`) throw unauthorized("The audience is invalid");
    const expires = claims["exp"];
    if (typeof expires !== "number" || expires * 1000 <= Date.now()) throw unauthorized("The token is expired");
  }

  #claims(token: string): Readonly<Record<string, unknown>> | undefined {
    const end = token.lastIndexOf(".");
    const signature = Buffer.from(token.slice(end + 1), "base64url");
    const expected = this.#signature(token.slice(0, Math.max(end, 0)));
    if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return undefined;
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return isObject(claims) ? claims : undefined;
  }

  #signature(signed: string): Buffer {
    return createHmac("sha256", this.#key).update(signed).digest();
  }

  #isOurs(url: string): boolean {
    if (!URL.canParse(url)) return false;
    const { hostname, username, password } = new URL(url);
    return username + password === "" && this.#names.has(hostname);
  }
}

/** The refusal of a token. */
export function unauthorized(description: string): ServiceFailure {
  const challenge = `Bearer error="invalid_token", error_description="${description}"`;
  return new ServiceFailure(401, undefined, description, { "www-authenticate": challenge });
}

/** A host name as `URL` writes it, for comparison: lower case, short IPv6 in brackets, Punycode, no port. */
function hostnameOf(name: string): string {
  const url = `http://${/^[^[].*:.*:/.test(name) ? `[${name}]` : name}`;
  return URL.canParse(url) ? new URL(url).hostname : name.toLowerCase();
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
