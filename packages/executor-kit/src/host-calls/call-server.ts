import { once } from "node:events";
import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";

/** Addresses of sockets are no longer than this on any system. */
const longestAddress = 100;
/** Connections of all blocks together. */
const mostConnections = 512;

/**
 * Listens for programs of this host that call functions of the host.
 *
 * @param directory - where the socket is made, which nobody else can enter. Where sockets have no files, or the path is too long,
 * a port of the loopback interface is used: what is not a block knows no token.
 * @returns the server, and its address as programs take it.
 */
export async function listenForCalls(
  directory: string,
  accept: (connection: Duplex) => void,
): Promise<{ readonly server: net.Server; readonly address: string }> {
  const place = path.join(directory, "calls");
  const asFile = process.platform !== "win32" && Buffer.byteLength(place) <= longestAddress;
  const server = net.createServer(accept);
  server.maxConnections = mostConnections;
  // What runs keeps this program alive, and nothing else.
  server.unref();
  server.listen(asFile ? { path: place } : { host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  return { server, address: asFile ? `unix:${place}` : `tcp:127.0.0.1:${port}` };
}
