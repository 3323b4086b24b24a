import { connect, type Socket } from "node:net";
import { ReadBuffers, type SharedMemory } from "./read-buffers.ts";

/** Longer paths do not fit into the address of a Unix socket. */
const longestPath = 107;

/**
 * Connects to the socket that the supervisor has made in a shared work directory, so that what it says need not pass
 * through the daemon, which copies everything three times.
 *
 * @param take - gets what comes; keeps pieces of it only while it holds their memory.
 * @returns `undefined` if that does not work, as between a virtual machine and its host.
 */
export function connectDirectly(
  file: string,
  take: (bytes: Buffer, memory: SharedMemory) => void,
): Promise<Socket | undefined> {
  if (Buffer.byteLength(file) > longestPath) return Promise.resolve(undefined);
  const buffers = new ReadBuffers();
  const socket = connect({
    path: file,
    onread: {
      buffer: () => buffers.next,
      callback: (count) => {
        buffers.filled(count, take);
        return true;
      },
    },
  });
  return new Promise((resolve) => {
    socket.once("connect", () => {
      socket.resume();
      resolve(socket);
    });
    socket.once("error", () => {
      resolve(undefined);
    });
  });
}
