import { once } from "node:events";
import { createServer, type Server } from "node:http";
import net, { type AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

/** An HTTP proxy in front of the API server, which can break, freeze or reject connections; for `await using`. */
export class FaultProxy implements AsyncDisposable {
  /** How many connections went through it. */
  connections = 0;
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Duplex, Duplex]>();
  #open = true;
  #flowing = true;

  private constructor(server: Server) {
    const { port } = Object(server.address()) as AddressInfo;
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<FaultProxy> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = new FaultProxy(server);
    server.on("connect", ({ url = "" }, client: Duplex) => proxy.#connect(url, client));
    return proxy;
  }

  /** Breaks all connections, and accepts no more until `restore`, like a server that ends. */
  cut(): void {
    this.#open = false;
    for (const sockets of this.#pairs) for (const socket of sockets) socket.destroy();
  }

  /** Passes nothing on any more, but breaks nothing, like a node or a network that is gone. */
  freeze(): void {
    this.#flowing = false;
    for (const [one, other] of this.#pairs) {
      one.unpipe(other);
      other.unpipe(one);
    }
  }

  /** Accepts connections again; frozen ones stay frozen. */
  restore(): void {
    this.#open = true;
    this.#flowing = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #connect(target: string, client: Duplex): void {
    client.on("error", () => {});
    if (!this.#open) {
      client.destroy();
      return;
    }
    const [host, port] = target.split(":");
    const server = net.connect(Number(port), host);
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    this.connections += 1;
    server.on("error", () => {});
    for (const socket of pair) {
      socket.once("close", () => {
        this.#pairs.delete(pair);
        for (const each of pair) each.destroy();
      });
    }
    server.once("connect", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      if (!this.#flowing) return;
      client.pipe(server);
      server.pipe(client);
    });
  }
}
