import { connect, type Socket } from "node:net";
import type { Sandbox } from "e2b";

/** What a client sends of itself with a request for a sandbox. */
export function headersFor(sandbox: Sandbox): Record<string, string> {
  return { "e2b-sandbox-id": sandbox.sandboxId, "x-access-token": String(Reflect.get(sandbox, "envdAccessToken")) };
}

/** One message of the Connect protocol. */
export function envelope(text: string, flags = 0): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([header, Buffer.from(text)]);
}

/** Sends the head of a request, and nothing else. */
export function rawRequest(serverUrl: string, line: string, headers: Readonly<Record<string, string>>): Socket {
  const socket = connect(Number(new URL(serverUrl).port), "127.0.0.1");
  socket.on("error", () => {});
  const head = Object.entries({ host: "x", ...headers }).map((each) => each.join(": "));
  socket.write(`${line} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`);
  return socket;
}
