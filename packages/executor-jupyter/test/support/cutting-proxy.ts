import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A way to a server that can be cut. */
export class CuttingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #channels = new Set<Socket>();
  /** Refuses new connections. */
  isRefusing = false;

  private constructor(target: URL) {
    this.#server = createServer((client) => {
      if (this.isRefusing) {
        client.destroy();
        return;
      }
      const server = connect(Number(target.port), target.hostname);
      client.once("data", (head) => {
        if (head.includes("/channels?")) this.#channels.add(client);
      });
      client.pipe(server).pipe(client);
      for (const [each, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(each);
        each.on("error", () => {});
        each.on("close", () => {
          this.#sockets.delete(each);
          this.#channels.delete(each);
          other.destroy();
        });
      }
    });
  }

  static async start(target: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(new URL(target));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get baseUrl(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return `http://127.0.0.1:${address.port}/`;
  }

  /** How many WebSockets there are. */
  get channels(): number {
    return this.#channels.size;
  }

  /** Breaks all connections, with what is under way; returns how many WebSockets there were. */
  cut(): number {
    const { size } = this.#channels;
    for (const each of this.#sockets) each.destroy();
    return size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}
