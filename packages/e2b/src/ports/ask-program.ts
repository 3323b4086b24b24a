import { type ClientRequest, request } from "node:http";
import type { Duplex } from "node:stream";

/** What to ask a program that listens on a port. */
export interface ProgramRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string[]>>;
  /** Breaks the connection. */
  readonly signal: AbortSignal;
}

/** Sends the head of a request over a connection, which is for this request only. Its body follows. */
export function askProgram(connection: Duplex, { headers, ...asked }: ProgramRequest): ClientRequest {
  const spelled = Object.fromEntries(Object.entries(headers).map(([name, values]) => [usualSpelling(name), values]));
  return request({ ...asked, headers: spelled, setHost: false, createConnection: () => connection });
}

/** `Content-Type` for `content-type`, as HTTP/1.1 servers mostly see it: many small programs compare names as text. */
function usualSpelling(name: string): string {
  return name.replaceAll(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
