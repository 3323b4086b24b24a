import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { pipeline, type Duplex } from "node:stream";

/** How many connections to one port can be open; the supervisor accepts no more for all ports together. */
const mostConnections = 128;

/** Loopback ports of this host that lead to ports where a supervisor runs, which needs no network for this. */
export class PublishedPorts {
  /** Maps ports there to the ports of 127.0.0.1 that lead to them. */
  readonly ports: ReadonlyMap<number, number>;
  readonly #servers: readonly Server[];
  readonly #sockets: ReadonlySet<Socket>;

  private constructor(ports: ReadonlyMap<number, number>, servers: readonly Server[], sockets: ReadonlySet<Socket>) {
    this.ports = ports;
    this.#servers = servers;
    this.#sockets = sockets;
  }

  /**
   * @param wanted - maps ports there to the ports of 127.0.0.1 that should lead to them; 0 for any free port.
   * @param connect - connects to a port there through the current supervisor, as `Supervisor.connect` does.
   * @throws the system's error if a port of this host is in use.
   */
  static async open(
    wanted: ReadonlyMap<number, number>,
    connect: (port: number) => Duplex | undefined,
  ): Promise<PublishedPorts> {
    const ports = new Map<number, number>();
    const sockets = new Set<Socket>();
    const servers: Server[] = [];
    for (const [port, here] of wanted) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        sockets.add(socket);
        socket.once("close", () => sockets.delete(socket));
        join(socket, () => connect(port));
      });
      server.maxConnections = mostConnections;
      servers.push(server);
      server.listen(here, "127.0.0.1");
      await once(server, "listening");
      const address = server.address();
      if (typeof address === "object" && address !== null) ports.set(port, address.port);
    }
    return new PublishedPorts(ports, servers, sockets);
  }

  /** Ends all connections at once, and stops listening. */
  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Connects two streams with each other until both have ended or one breaks. */
function join(socket: Socket, open: () => Duplex | undefined): void {
  try {
    const tunnel = open();
    if (!tunnel) return void socket.on("error", () => {}).destroy();
    const ended = (error: unknown): void => {
      if (error === null || error === undefined) return;
      socket.destroy();
      tunnel.destroy();
    };
    pipeline(socket, tunnel, ended);
    pipeline(tunnel, socket, ended);
  } catch {
    // There are too many connections.
    socket.on("error", () => {}).destroy();
  }
}
