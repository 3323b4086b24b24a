import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** Why a request is refused. */
export interface Refusal {
  readonly status: 401 | 403;
  readonly message: string;
}

/**
 * Admits only the demo's own page: no pages of other sites, no foreign host names that resolve to this machine, no
 * other users.
 */
export class PageGuard {
  /** The secret in the address that the demo prints. The page sends it with each request for data. */
  readonly token: string = randomBytes(24).toString("base64url");

  /** Checks the origin of a request for the page itself, which contains no secret. */
  checkOrigin({ headers }: IncomingMessage): Refusal | undefined {
    if (!isLocal(`http://${headers.host ?? ""}`)) return { status: 403, message: "Host not allowed." };
    const isOwn = headers.origin === undefined || headers.origin === `http://${headers.host}`;
    return isOwn ? undefined : { status: 403, message: "Origin not allowed." };
  }

  /** Checks a request for data. */
  check(request: IncomingMessage): Refusal | undefined {
    const refusal = this.checkOrigin(request);
    if (refusal !== undefined) return refusal;
    const token = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    // Digests have equal lengths, and comparing them reveals nothing about the token.
    if (token !== undefined && timingSafeEqual(digest(token), digest(this.token))) return undefined;
    return { status: 401, message: "Open the address that the demo printed: it contains the token." };
  }
}

function isLocal(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname, username, password } = new URL(url);
  return username + password === "" && ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
