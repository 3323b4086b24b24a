import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** A server on this host's loopback interface, or on all of its addresses, that plays a host of the network. */
export class PlayedHost implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets: ReadonlySet<Socket>;

  private constructor(server: Server, sockets: ReadonlySet<Socket>) {
    const address = server.address();
    this.port = typeof address === "object" && address !== null ? address.port : 0;
    this.#server = server;
    this.#sockets = sockets;
  }

  /** A host that speaks plain HTTP. */
  static http(answer: RequestListener, address?: string): Promise<PlayedHost> {
    return PlayedHost.#listen(createHttpServer(answer), address);
  }

  /** A host that accepts connections, and knows how many are open. */
  static tcp(answer: (socket: Socket) => void): Promise<PlayedHost> {
    return PlayedHost.#listen(createServer(answer));
  }

  /** A host that speaks HTTPS, with its own certificate. Needs `openssl`. */
  static async https(name: string, answer: RequestListener): Promise<{ host: PlayedHost; ca: string }> {
    const directory = await mkdtemp(join(tmpdir(), "fenced-testkit-"));
    try {
      const [key, certificate] = [join(directory, "key.pem"), join(directory, "cert.pem")];
      const words = `req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=${name}`;
      const files = ["-addext", `subjectAltName=DNS:${name}`, "-keyout", key, "-out", certificate];
      await promisify(execFile)("openssl", [...words.split(" "), ...files]);
      const ca = await readFile(certificate, "utf8");
      return { host: await PlayedHost.#listen(createHttpsServer({ key: await readFile(key), cert: ca }, answer)), ca };
    } finally {
      await rm(directory, { recursive: true });
    }
  }

  /** The number of connections that are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  static async #listen(server: Server, address = "127.0.0.1"): Promise<PlayedHost> {
    const sockets = new Set<Socket>();
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => sockets.delete(socket));
    });
    server.listen(0, address);
    await once(server, "listening");
    return new PlayedHost(server, sockets);
  }
}
