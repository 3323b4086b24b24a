import { type ClientRequest, request } from "node:http";
import type { Duplex } from "node:stream";

/** What to ask a program that listens on a port. */
export interface ProgramRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string[]>>;
  /** Breaks the connection. */
  readonly signal: AbortSignal;
}

/** Sends the head of a request over a connection, which is for this request only. Its body follows. */
export function askProgram(connection: Duplex, { headers, ...asked }: ProgramRequest): ClientRequest {
  return request({ ...asked, headers: { ...headers }, setHost: false, createConnection: () => connection });
}
