import { once } from "node:events";
import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";

/** The longest socket address that every system accepts. */
const longestAddress = 100;
/** Maximum number of connections of all blocks together. */
const mostConnections = 512;

/**
 * Listens for programs on this host that call host functions.
 *
 * @param directory - where to create the socket, private to this user. If sockets are not files, or the path is too
 * long, a loopback port is used instead, which is safe because only blocks know a token.
 * @returns the server, and its address in the form that programs take.
 */
export async function listenForCalls(
  directory: string,
  accept: (connection: Duplex) => void,
): Promise<{ readonly server: net.Server; readonly address: string }> {
  const place = path.join(directory, "calls");
  const asFile = process.platform !== "win32" && Buffer.byteLength(place) <= longestAddress;
  const server = net.createServer(accept);
  server.maxConnections = mostConnections;
  // Only running calls may keep this program alive.
  server.unref();
  server.listen(asFile ? { path: place } : { host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  return { server, address: asFile ? `unix:${place}` : `tcp:127.0.0.1:${port}` };
}
