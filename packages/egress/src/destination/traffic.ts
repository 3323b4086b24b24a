import type { Socket } from "node:net";

/** Bytes that the proxy has received from hosts, and sent to them. */
export interface RelayedBytes {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** Counts what connections to hosts carry. */
export class Traffic {
  readonly #open = new Set<Socket>();
  #ended: RelayedBytes = { receivedBytes: 0, sentBytes: 0 };

  /** Counts a connection from its first byte on. */
  follow(socket: Socket): void {
    const end = (): void => {
      this.#open.delete(socket);
      this.#ended = plus(this.#ended, socket);
    };
    if (socket.destroyed) {
      end();
      return;
    }
    this.#open.add(socket);
    socket.once("close", end);
  }

  /** So far. */
  get total(): RelayedBytes {
    return [...this.#open].reduce(plus, this.#ended);
  }
}

function plus({ receivedBytes, sentBytes }: RelayedBytes, { bytesRead, bytesWritten }: Socket): RelayedBytes {
  return { receivedBytes: receivedBytes + bytesRead, sentBytes: sentBytes + bytesWritten };
}
