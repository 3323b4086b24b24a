import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { portOf } from "./loopback-hosts.ts";

/** A CONNECT that arrived at the proxy. */
export interface Connected {
  /** `host:port`, as it was asked for. */
  readonly target: string;
  /** The user name and password; `undefined` if none were sent. */
  readonly credentials: string | undefined;
}

/** How the proxy behaves. */
export interface ConnectProxyOptions {
  /** What to answer in place of connecting. Default: the target's port at 127.0.0.1, whatever its name. */
  readonly answer?: ((target: string, stream: Duplex) => void) | undefined;
  /** The server for its clients, such as one with TLS. Default: plain HTTP. */
  readonly server?: Server | undefined;
}

/** A company's HTTP proxy on 127.0.0.1, until the test ends. It forwards nothing but CONNECT. */
export async function playConnectProxy({ answer, server = createServer() }: ConnectProxyOptions = {}): Promise<{
  readonly port: number;
  readonly connected: readonly Connected[];
}> {
  const connected: Connected[] = [];
  server.on("request", (_, response) => void response.writeHead(405).end());
  server.on("connect", (request: IncomingMessage, stream: Duplex) => {
    const target = request.url ?? "";
    const [, encoded] = /^Basic (.*)$/.exec(request.headers["proxy-authorization"] ?? "") ?? [];
    connected.push({
      target,
      credentials: encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString(),
    });
    stream.on("error", () => {});
    if (answer) {
      answer(target, stream);
      return;
    }
    const host = connect({ port: Number(/\d+$/.exec(target)?.[0]), host: "127.0.0.1", allowHalfOpen: true });
    host.on("error", () => void stream.end("HTTP/1.1 503 Service Unavailable\r\n\r\n"));
    host.once("close", () => void stream.destroy());
    stream.once("close", () => void host.destroy());
    void once(host, "connect").then(
      () => {
        stream.write("HTTP/1.1 200 Connection established\r\nX-Proxy: test\r\n\r\n");
        stream.pipe(host).pipe(stream);
      },
      () => {},
    );
  });
  return { port: await portOf(server), connected };
}
