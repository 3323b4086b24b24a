import { type IncomingMessage, STATUS_CODES } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import type { Sandbox } from "../control/sandbox.ts";
import { askProgram } from "./ask-program.ts";
import { headersForClient, headersForProgram, valuesOf } from "./port-headers.ts";
import { connectionRefusal, type PortRefusal } from "./port-refusal.ts";

/** A request that wants to leave HTTP, as Node's servers have it. */
export interface UpgradeRequest {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  /** What the client has sent already. */
  readonly head: Buffer;
}

/**
 * Asks a program that listens on a port of a sandbox for a WebSocket. If it agrees, the connection is its own from then on.
 * Otherwise its answer ends the connection: a proxy in between must not send another request there.
 */
export async function upgradePort(upgrade: UpgradeRequest, sandbox: Sandbox, port: number): Promise<void> {
  const { incoming, socket, head } = upgrade;
  const refuse = (error: unknown): void => refuseUpgrade(socket, connectionRefusal(sandbox.settings.id, port, error));
  const leaving = new AbortController();
  socket.once("close", () => leaving.abort());
  if (socket.destroyed) return;
  const end = (): void => leaving.abort(sandbox.signal.reason);
  sandbox.signal.addEventListener("abort", end, { once: true });
  leaving.signal.addEventListener("abort", () => {
    sandbox.signal.removeEventListener("abort", end);
    socket.destroy();
  });
  try {
    const headers = headersForProgram(valuesOf(incoming.headersDistinct), sandbox, port);
    const connection = await sandbox.openPort(port);
    if (leaving.signal.aborted) return void connection.destroy();
    const { method = "GET", url: path = "/" } = incoming;
    const asked = { method, path, headers: { ...headers, connection: ["Upgrade"], upgrade: ["websocket"] } };
    const asking = askProgram(connection, { ...asked, signal: leaving.signal });
    asking.once("error", refuse);
    asking.once("upgrade", (response: IncomingMessage, upstream: Duplex, first: Buffer) => {
      const agreed = { ...headersForClient(response), connection: ["Upgrade"], upgrade: ["websocket"] };
      socket.write(headOf(response, agreed));
      if (first.length > 0) socket.write(first);
      if (head.length > 0) upstream.write(head);
      join(socket, upstream);
    });
    asking.once("response", (response: IncomingMessage) => {
      socket.write(headOf(response, { ...headersForClient(response), connection: ["close"] }));
      pipeline(response, socket, () => socket.destroy());
    });
    asking.end();
  } catch (error) {
    refuse(error);
  }
}

/** Answers a request for an upgrade that gets none, and ends its connection. */
export function refuseUpgrade(socket: Duplex, refusal: PortRefusal): void {
  if (socket.destroyed || socket.writableEnded) return;
  const body = JSON.stringify(refusal);
  socket.end(
    `HTTP/1.1 ${refusal.code} ${STATUS_CODES[refusal.code] ?? ""}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

function join(one: Duplex, other: Duplex): void {
  const ended = (error: unknown): void => {
    if (error === null || error === undefined) return;
    one.destroy();
    other.destroy();
  };
  pipeline(one, other, ended);
  pipeline(other, one, ended);
}

function headOf(
  { statusCode = 502, statusMessage = "" }: IncomingMessage,
  headers: Readonly<Record<string, string[]>>,
): Buffer {
  const lines = Object.entries(headers).flatMap(([name, values]) => values.map((value) => `${name}: ${value}`));
  return Buffer.from([`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, "", ""].join("\r\n"), "latin1");
}
