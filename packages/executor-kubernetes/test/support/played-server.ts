import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

/** A request as the played server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
}

/** Answers a request. */
type Answer = (answer: ServerResponse, request: IncomingMessage) => unknown;

/** How a played server behaves; what is left out works as usual. */
export interface Behaviour {
  /** Answers the request for a pod; `attempt` counts from 1. */
  readonly create?: (answer: ServerResponse, attempt: number) => unknown;
  readonly watch?: Answer;
  readonly get?: Answer;
  readonly remove?: Answer;
  /** Answers the exec: writes an HTTP response. */
  readonly exec?: (socket: Duplex) => unknown;
}

/** An API server that misbehaves in ways that a real one cannot be made to; for `await using`. */
export class PlayedServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(server: Server) {
    const { port } = Object(server.address()) as AddressInfo;
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(behaviour: Behaviour): Promise<PlayedServer> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const played = new PlayedServer(server);
    server.on("request", (request, answer) => played.#answer(behaviour, request, answer));
    server.on("upgrade", (request, socket: Duplex) => {
      played.#see(request);
      played.#sockets.add(socket);
      socket.on("error", () => {});
      (behaviour.exec ?? ((each: Duplex) => each.destroy()))(socket);
    });
    return played;
  }

  /** How many requests with this method came. */
  count(method: string): number {
    return this.requests.filter((request) => request.method === method).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #see({ method = "", url = "", headers }: IncomingMessage): void {
    this.requests.push({ method, path: url, authorization: headers.authorization });
  }

  #answer(behaviour: Behaviour, request: IncomingMessage, answer: ServerResponse): void {
    this.#see(request);
    request.resume();
    const { create, watch = running, get = running, remove = running } = behaviour;
    if (request.method === "POST") (create ?? running)(answer, this.count("POST"));
    else if (request.method === "DELETE") remove(answer, request);
    else (/watch=1/.test(request.url ?? "") ? watch : get)(answer, request);
  }
}

/** A pod that runs, as an event and as an object alike. */
function running(answer: ServerResponse): void {
  const pod = {
    metadata: { name: "played", creationTimestamp: new Date().toISOString() },
    status: { phase: "Running", containerStatuses: [{ name: "code", state: { running: {} } }] },
  };
  json(answer, 200, { type: "ADDED", object: pod, ...pod });
}

/** Answers with a line of JSON. */
export function json(answer: ServerResponse, status: number, body: object): void {
  answer.writeHead(status, { "content-type": "application/json" });
  answer.end(`${JSON.stringify(body)}\n`);
}
