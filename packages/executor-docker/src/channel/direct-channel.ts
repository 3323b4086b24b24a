import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { ReadBuffers, type SharedMemory } from "./read-buffers.ts";

/** Linux: names a file without opening it, whatever it is. Node has no constant for it. See open(2). */
const O_PATH = 0o10000000;

/**
 * Connects to the socket that the supervisor has made in a shared work directory, so that what it says need not pass
 * through the daemon, which copies everything three times. Never follows a link: who else has the directory could lead
 * this process to another socket of this host, that of the daemon say.
 *
 * @param take - gets what comes; keeps pieces of it only while it holds their memory.
 * @returns `undefined` if that does not work, as between a virtual machine and its host.
 */
export async function connectDirectly(
  file: string,
  take: (bytes: Buffer, memory: SharedMemory) => void,
): Promise<Socket | undefined> {
  if (process.platform !== "linux") return undefined;
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, O_PATH | constants.O_NOFOLLOW);
    if (!(await handle.stat()).isSocket()) return undefined;
    // By the handle it is that very file, and its name has no length that does not fit into an address.
    return await connected(`/proc/self/fd/${handle.fd}`, take);
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

function connected(file: string, take: (bytes: Buffer, memory: SharedMemory) => void): Promise<Socket> {
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
  return new Promise((resolve, reject) => {
    socket.once("connect", () => {
      socket.resume();
      resolve(socket);
    });
    socket.once("error", reject);
  });
}
