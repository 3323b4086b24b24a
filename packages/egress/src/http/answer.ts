import { STATUS_CODES, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Refusal } from "../destination/refusal.ts";
import { endSoon } from "../tunnel.ts";

/** What the client learns about a failure; nothing about an unexpected one. */
export function refusalOf(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal(502, "the proxy could not forward the request");
}

/** Answers a request with the reason in the status line, which most clients show, and in the body. */
export function refuse(response: ServerResponse, { status, message }: Refusal): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  // After an invalid request, the next one may begin anywhere.
  if (status === 400) response.shouldKeepAlive = false;
  response.writeHead(status, phrase(status, message), {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(`${message}\n`),
    ...(status === 407 ? { "proxy-authenticate": "Basic" } : {}),
  });
  response.end(`${message}\n`);
}

/** Does the same on a connection without a response object. */
export function refuseStream(stream: Duplex, { status, message }: Refusal): void {
  if (stream.destroyed || !stream.writable) {
    stream.destroy();
    return;
  }
  const body = `${message}\n`;
  stream.write(
    `HTTP/1.1 ${status} ${phrase(status, message)}\r\n` +
      `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `${status === 407 ? "Proxy-Authenticate: Basic\r\n" : ""}Connection: close\r\n\r\n${body}`,
  );
  endSoon(stream);
}

function phrase(status: number, message: string): string {
  return /^[\x20-\x7e]{1,400}$/.test(message) ? message : (STATUS_CODES[status] ?? "Error");
}
