import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createNetServer, type AddressInfo, type Server as NetServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";

/** A plain HTTP server on 127.0.0.1 that plays a host; by default it echoes the request line and host. */
export async function playHost(
  answer: (request: IncomingMessage, response: ServerResponse) => void = (request, response) =>
    void response.end(`host of ${request.headers.host ?? ""}: ${request.method ?? ""} ${request.url ?? ""}`),
): Promise<number> {
  return portOf(createServer(answer));
}

/** A plain TCP server that plays a host. */
export async function playTcp(answer: (socket: Socket) => void): Promise<number> {
  return portOf(createNetServer({ allowHalfOpen: true }, answer));
}

/** Where a host is played. Only root may use a port below 1024. */
export interface PlayedAt {
  /** An address of the loopback interface. Default: 127.0.0.1. */
  readonly address?: string;
  /** Default: a free one. */
  readonly port?: number;
}

/** Listens on the loopback interface until the test ends. */
export async function portOf(server: Server | NetServer, at: PlayedAt = {}): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(at.port ?? 0, at.address ?? "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return (server.address() as AddressInfo).port;
}

/** An HTTPS host with one or more names, and the certificate that identifies it. */
export async function playTlsHost(
  name: string | readonly [string, ...string[]],
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  at: PlayedAt = {},
): Promise<{ port: number; ca: string }> {
  const identity = await newIdentity(typeof name === "string" ? [name] : name);
  return { port: await portOf(createTlsServer(identity, answer), at), ca: identity.cert };
}

/** A key, and the certificate that it signed for one or more names. */
export async function newIdentity(names: readonly [string, ...string[]]): Promise<{ key: string; cert: string }> {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  try {
    const [key, cert] = [path.join(directory, "key.pem"), path.join(directory, "cert.pem")];
    const alternatives = names.map((each) => `DNS:${each}`).join(",");
    const subject = ["-subj", `/CN=${names[0]}`, "-addext", `subjectAltName=${alternatives}`];
    const words = "req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1".split(" ");
    await promisify(execFile)("openssl", [...words, ...subject, "-keyout", key, "-out", cert]);
    return { key: await readFile(key, "utf8"), cert: await readFile(cert, "utf8") };
  } finally {
    await rm(directory, { recursive: true });
  }
}
