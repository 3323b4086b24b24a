import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { request } from "node:http";
import { createServer, type Server } from "node:https";
import { connect, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** A server in front of a Jupyter server: speaks TLS with a certificate of its own authority, under a path prefix. */
export class TlsProxy implements AsyncDisposable {
  /** The authority's certificate. */
  readonly ca: string;
  readonly prefix = "/user/some one/";
  /** Paths, with their query, of all requests. */
  readonly requests: string[] = [];
  /** Rejects new WebSockets. */
  refusesSockets = false;
  /** How many requests to delete something get status 500, as from a server that is just starting that kernel again. */
  refusedDeletions = 0;
  readonly #server: Server;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, ca: string, headers: Readonly<Record<string, string>>) {
    this.#server = server;
    this.ca = ca;
    this.#headers = headers;
  }

  /**
   * @param target - the server's base address, without a path.
   * @param headers - added to requests to the server. Default: none.
   */
  static async start(target: URL, headers: Readonly<Record<string, string>> = {}): Promise<TlsProxy> {
    const { key, cert } = await selfSigned();
    const proxy = new TlsProxy(createServer({ key, cert }), cert, headers);
    proxy.#forward(target);
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get baseUrl(): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}${this.prefix}`;
  }

  /** Breaks all connections; new ones are accepted. */
  breakConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakConnections();
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #forward(target: URL): void {
    this.#server.on("request", (incoming, outgoing) => {
      const path = this.#inner(incoming.url ?? "");
      if (incoming.method === "DELETE" && this.refusedDeletions > 0) {
        this.refusedDeletions -= 1;
        outgoing.writeHead(500, { "Content-Type": "application/json" }).end('{"message":"Unhandled error"}');
        return;
      }
      const headers = { ...incoming.headers, ...this.#headers, host: target.host };
      const onward = request(new URL(path, target), { method: incoming.method ?? "GET", headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      onward.on("error", () => outgoing.destroy());
      incoming.pipe(onward);
    });
    this.#server.on("upgrade", (incoming, socket: Socket, head) => {
      if (this.refusesSockets) {
        socket.destroy();
        return;
      }
      const onward = connect(Number(target.port), target.hostname, () => {
        const headers = Object.entries({ ...incoming.headers, ...this.#headers, host: target.host });
        const lines = headers.map(([name, value]) => `${name}: ${String(value)}`);
        onward.write([`GET ${this.#inner(incoming.url ?? "")} HTTP/1.1`, ...lines, "", ""].join("\r\n"));
        onward.write(head);
        socket.pipe(onward).pipe(socket);
      });
      for (const each of [socket, onward]) {
        this.#sockets.add(each);
        each.on("error", () => {});
        each.on("close", () => {
          socket.destroy();
          onward.destroy();
        });
      }
    });
  }

  #inner(path: string): string {
    this.requests.push(path);
    const prefix = encodeURI(this.prefix);
    return path.startsWith(prefix) ? path.slice(prefix.length - 1) : "/outside-the-prefix";
  }
}

async function selfSigned(): Promise<{ key: string; cert: string }> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-tls-"));
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert];
  try {
    await promisify(execFile)("openssl", [...words, ...names]);
    return { key: await readFile(key, "utf8"), cert: await readFile(cert, "utf8") };
  } finally {
    await rm(directory, { recursive: true });
  }
}
