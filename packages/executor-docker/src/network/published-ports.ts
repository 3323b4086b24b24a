import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { pipeline, type Duplex } from "node:stream";
import { InvalidInputError } from "@fenced/core";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { BlockRunner } from "../run/exec-runner.ts";

/** Ports of this host's loopback interface that lead to ports in a container, which needs no network for it. */
export class PublishedPorts {
  /** Ports in the container, each with the port of 127.0.0.1 that leads to it. */
  readonly ports: ReadonlyMap<number, number>;
  readonly #servers: readonly Server[];
  readonly #sockets: ReadonlySet<Socket>;

  private constructor(ports: ReadonlyMap<number, number>, servers: readonly Server[], sockets: ReadonlySet<Socket>) {
    this.ports = ports;
    this.#servers = servers;
    this.#sockets = sockets;
  }

  /**
   * @param runner - that of the container that is there now.
   * @throws InvalidInputError if nothing in the container can carry the connections.
   */
  static async open(
    { dockerPorts = [] }: DockerExecutorOptions,
    runner: () => BlockRunner | undefined,
  ): Promise<PublishedPorts> {
    if (dockerPorts.length > 0 && !runner()?.connect) throw notReachable();
    const ports = new Map<number, number>();
    const sockets = new Set<Socket>();
    const servers: Server[] = [];
    for (const port of new Set(dockerPorts)) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        sockets.add(socket);
        socket.once("close", () => sockets.delete(socket));
        join(socket, () => runner()?.connect?.(port));
      });
      servers.push(server);
      server.listen(0, "127.0.0.1");
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

/** Has two streams talk to each other until both have ended, or one breaks off. */
function join(socket: Socket, open: () => Duplex | undefined): void {
  try {
    const tunnel = open();
    if (!tunnel) throw notReachable();
    const ended = (error: unknown): void => {
      if (error === null || error === undefined) return;
      socket.destroy();
      tunnel.destroy();
    };
    pipeline(socket, tunnel, ended);
    pipeline(tunnel, socket, ended);
  } catch {
    // There is no container, or it carries too many connections.
    socket.on("error", () => {}).destroy();
  }
}

function notReachable(): InvalidInputError {
  return new InvalidInputError("This container has no Python, through which `dockerPorts` could be reached", {
    remedy: "Use an image that has Python 3.8 or later, or leave `dockerPorts` out.",
  });
}
