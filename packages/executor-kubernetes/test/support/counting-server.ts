import { once } from "node:events";
import { createServer, type ClientRequest, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { request as secureRequest } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { clusterParts, testCluster } from "./kubeconfig-files.ts";

/** A server in front of the API server, which records every request and passes it on; for `await using`. */
export class CountingServer implements AsyncDisposable {
  /** The requests, with verbs as in access rights: `create pods`. */
  readonly requests: string[] = [];
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  readonly #target = clusterParts(testCluster().cluster);

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(Object(server.address()) as AddressInfo).port}`;
  }

  static async start(): Promise<CountingServer> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const counting = new CountingServer(server);
    server.on("request", (request, answer) => counting.#handOn(request, answer));
    server.on("upgrade", (request, socket: Duplex, head: Buffer) => counting.#connect(request, socket, head));
    return counting;
  }

  /** Breaks the execs. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #ask(from: IncomingMessage): ClientRequest {
    const { method = "", url = "", headers } = from;
    this.requests.push(nameOf(method, url));
    const asked = secureRequest(new URL(url, this.#target.server), { method, headers, ca: this.#target.authority });
    asked.on("error", () => from.destroy());
    return asked;
  }

  #handOn(request: IncomingMessage, answer: ServerResponse): void {
    const asked = this.#ask(request);
    asked.once("response", (answered: IncomingMessage) => {
      answer.writeHead(answered.statusCode ?? 0, answered.headers);
      answered.on("error", () => answer.destroy()).pipe(answer);
    });
    answer.once("close", () => asked.destroy());
    request.pipe(asked);
  }

  #connect(request: IncomingMessage, client: Duplex, head: Buffer): void {
    this.#sockets.add(client);
    client.on("error", () => {});
    const asked = this.#ask(request);
    asked.once("upgrade", (answered: IncomingMessage, server: Duplex, rest: Buffer) => {
      this.#sockets.add(server);
      server.on("error", () => client.destroy());
      const lines = answered.rawHeaders.map((each, index) => (index % 2 === 0 ? `${each}: ` : `${each}\r\n`));
      client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
      client.write(rest);
      server.write(head);
      client.pipe(server).pipe(client);
    });
    // A refusal.
    asked.once("response", (answered: IncomingMessage) => {
      const { statusCode = 0, statusMessage = "", rawHeaders } = answered;
      const lines = rawHeaders.map((each, index) => (index % 2 === 0 ? `${each}: ` : `${each}\r\n`));
      client.write(`HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("")}\r\n`);
      answered.pipe(client);
    });
    asked.end();
  }
}

function nameOf(method: string, url: string): string {
  const { pathname, searchParams } = new URL(url, "http://none");
  const [, resource = "", name, part] =
    /\/namespaces\/[^/]+\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(pathname) ?? [];
  if (part !== undefined) return `create ${resource}/${part}`;
  if (method !== "GET") return `${method === "POST" ? "create" : "delete"} ${resource}`;
  return `${searchParams.has("watch") ? "watch" : name === undefined ? "list" : "get"} ${resource}`;
}
