import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** Why a request is refused. */
export interface Refusal {
  readonly status: 401 | 403 | 404;
  readonly message: string;
}

/** Lets in who knows the token and calls the server by one of its names, and no page of another site. */
export class RequestGuard {
  readonly #names: ReadonlySet<string>;
  readonly #token: Buffer;

  constructor({ names, token }: { readonly names: readonly string[]; readonly token: string }) {
    this.#names = new Set(["localhost", "127.0.0.1", "[::1]", ...names].map(hostnameOf));
    this.#token = digest(token);
  }

  /** @returns `undefined` if the request may pass. */
  check({ headers, url }: IncomingMessage): Refusal | undefined {
    if (!this.#isOurs(`http://${headers.host ?? ""}`)) {
      return {
        status: 403,
        message: "This server is not called by that name. Name it with --allow-host if it should be.",
      };
    }
    if (headers.origin !== undefined && !this.#isOurs(headers.origin)) {
      return { status: 403, message: "Pages of other sites may not call this server." };
    }
    // The scheme's case does not matter.
    const token = /^bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
    // Digests are of one length, and comparing them tells nothing about the token.
    if (token === undefined || !timingSafeEqual(digest(token), this.#token)) {
      return { status: 401, message: "Send the server's token in the header: Authorization: Bearer <token>." };
    }
    if (url?.split("?")[0] === "/mcp") return undefined;
    return { status: 404, message: "There is nothing here. MCP is served at /mcp." };
  }

  #isOurs(url: string): boolean {
    if (!URL.canParse(url)) return false;
    const { hostname, username, password } = new URL(url);
    return username + password === "" && this.#names.has(hostname);
  }
}

/** As `URL` writes it, and requests therefore are compared: lower case, short IPv6 in brackets, Punycode, no port. */
function hostnameOf(name: string): string {
  const url = `http://${/^[^[].*:.*:/.test(name) ? `[${name}]` : name}`;
  return URL.canParse(url) ? new URL(url).hostname : name.toLowerCase();
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
