import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Download } from "./download.ts";

/** Milliseconds within which the last bytes must leave, once one side has ended. */
const lastWordsMs = 30_000;

/**
 * Carries bytes in both directions, each at the pace of its slower side, until both sides have ended; a side that has
 * ended still receives.
 *
 * @param download - the one that `upstream` was opened with.
 * @param idleMs - milliseconds of silence in both directions, or of a client that does not read, before the tunnel is
 * closed.
 */
export function joinStreams(client: Duplex, upstream: Socket, download: Download, idleMs: number): void {
  upstream.setTimeout(idleMs, () => upstream.destroy());
  upstream.on("error", () => reset(client));
  client.on("error", () => reset(upstream));
  client.once("close", () => endSoon(upstream));
  upstream.once("close", () => endSoon(client));
  // One of them may have closed before the listeners were added.
  if (client.destroyed || upstream.destroyed) {
    client.destroy();
    upstream.destroy();
    return;
  }
  client.pipe(upstream);
  download.passTo(client, upstream);
}

/** Flushes written data, then closes the stream. Drops data that arrives meanwhile. */
export function endSoon(stream: Duplex): void {
  if (stream.destroyed) return;
  const destroy = (): void => void stream.destroy();
  if (stream.writableFinished) {
    destroy();
    return;
  }
  const timer = setTimeout(destroy, lastWordsMs).unref();
  stream.once("close", () => clearTimeout(timer));
  stream.once("finish", destroy);
  stream.resume();
  stream.end();
}

/** Resets the connection, so that the other side does not mistake partial data for complete data. */
function reset(stream: Duplex): void {
  if (stream instanceof Socket && !(stream instanceof TLSSocket)) stream.resetAndDestroy();
  else stream.destroy();
}
