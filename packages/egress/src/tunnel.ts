import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** Time in which the last bytes must have gone, once one side has ended. */
const lastWordsMs = 30_000;

/**
 * Carries bytes both ways, each way no faster than its slower side, until both sides have ended; one that has ended still
 * hears what the other says.
 *
 * @param idleMs - of silence both ways, or of a client that does not read, before the tunnel is torn down.
 */
export function joinStreams(client: Duplex, upstream: Socket, idleMs: number): void {
  upstream.setTimeout(idleMs, () => upstream.destroy());
  upstream.on("error", () => reset(client));
  client.on("error", () => reset(upstream));
  client.once("close", () => endSoon(upstream));
  upstream.once("close", () => endSoon(client));
  // One of them may have gone before anybody listened.
  if (client.destroyed || upstream.destroyed) {
    client.destroy();
    upstream.destroy();
    return;
  }
  client.pipe(upstream);
  upstream.pipe(client);
}

/** Lets what was written go out, then lets go. What comes meanwhile is dropped. */
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

/** Breaks off, so that the other side does not take what it got for all there is. */
function reset(stream: Duplex): void {
  if (stream instanceof Socket && !(stream instanceof TLSSocket)) stream.resetAndDestroy();
  else stream.destroy();
}
