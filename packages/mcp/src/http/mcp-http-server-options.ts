import { type CodeExecutor, InvalidInputError } from "@fenced/core";
import type { McpServerOptions } from "../mcp-server-options.ts";

/** How an HTTP server of MCP is made. */
export interface McpHttpServerOptions extends McpServerOptions {
  /** Makes the executor of one session. The server owns it, and stops it when the session ends. */
  readonly createExecutor: () => CodeExecutor | Promise<CodeExecutor>;
  /** 0: any that is free. Default: 0. */
  readonly port?: number;
  /** The address to listen on. Default: `127.0.0.1`, which only programs of this machine reach. */
  readonly host?: string;
  /** What clients send as `Authorization: Bearer ...`: at least 16 visible characters. Default: a random one. */
  readonly token?: string;
  /**
   * Names, without port, by which clients may call the server, besides `localhost`, `127.0.0.1`, `[::1]` and `host`.
   * Requests to other names, and from pages of other names, are refused: a page that a browser shows must not reach the
   * server by a name that was made to mean this machine.
   */
  readonly allowedHosts?: readonly string[];
  /** Sessions at a time; one too many is answered with 503. Default: 8. */
  readonly maxSessions?: number;
  /** Milliseconds without a request and without an open stream after which a session ends. Default: 1,800,000. */
  readonly sessionIdleMs?: number;
  /** Told what no client hears of, or not all of: an executor that cannot be made, or does not stop as it should. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void;
}

/** @throws InvalidInputError if a setting of the HTTP server makes no sense. */
export function checkHttpOptions({ port = 0, token, maxSessions = 1, sessionIdleMs = 1 }: McpHttpServerOptions): void {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new InvalidInputError(`The port is ${port}`, { remedy: "Give a whole number from 0 to 65535." });
  }
  if (token !== undefined && !/^[\x21-\x7e]{16,}$/.test(token)) {
    throw new InvalidInputError("The token is too easy to guess, or cannot stand in a header", {
      remedy: "Give at least 16 visible ASCII characters, or none to have one made.",
    });
  }
  if (!Number.isSafeInteger(maxSessions) || maxSessions < 1) {
    throw new InvalidInputError(`maxSessions is ${maxSessions}`, { remedy: "Give a whole number, from 1." });
  }
  if (!(sessionIdleMs >= 1 && sessionIdleMs <= 2_147_483_647)) {
    throw new InvalidInputError(`sessionIdleMs is ${sessionIdleMs}`, {
      remedy: "Give milliseconds, from 1 to 2,147,483,647.",
    });
  }
}
