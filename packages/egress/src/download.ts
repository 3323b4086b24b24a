import { type OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** Bytes to read at once from a slow connection and from a fast one. */
const [little, much] = [65_536, 1_048_576];
/** Maximum number of a proxy's large buffers, which bounds its memory however much its clients leave unread. */
const mostLarge = 32;
/** Maximum number of free large buffers to keep for the next download. */
const mostFree = 4;
/** Maximum number of pieces in flight to a client: one is written while the next is read; more would only use memory. */
const mostOnTheWay = 2;

/** The large buffers that the connections of a proxy share. */
export class LargeBuffers {
  /** Streams that keep nothing of what was written to them, besides sockets. */
  readonly releasedBy: WeakSet<Duplex> = new WeakSet();
  readonly #free: Buffer[] = [];
  #made = 0;

  /** `undefined` if too many are in use. */
  take(): Buffer | undefined {
    const free = this.#free.pop();
    if (free) return free;
    if (this.#made >= mostLarge) return undefined;
    this.#made += 1;
    return Buffer.allocUnsafeSlow(much);
  }

  give(buffer: Buffer): void {
    if (this.#free.length < mostFree) this.#free.push(buffer);
    else this.#made -= 1;
  }
}

/**
 * Passes a host's data to a client at the client's pace. Reads that fill their buffer are followed by larger ones,
 * which takes half as long as `pipe` for a large download.
 */
export class Download {
  /** The option of `connect` for the connection to the host. */
  readonly onread: OnReadOpts = {
    buffer: () => this.#next(),
    callback: (length, buffer) => this.#arrived(length, buffer),
  };
  readonly #large: LargeBuffers;
  #client: Duplex | undefined;
  #resume: () => void = () => {};
  #current: Uint8Array | undefined;
  /** Data that the host sent before the client was connected. */
  #early: Uint8Array | undefined;
  #filled = false;
  #onTheWay = 0;

  constructor(large: LargeBuffers) {
    this.#large = large;
  }

  /** Passes everything on, including the end. */
  passTo(client: Duplex, upstream: Socket): void {
    this.#client = client;
    this.#resume = () => void upstream.resume();
    upstream.once("end", () => client.end());
    upstream.once("close", () => this.#giveBack(this.#current));
    if (this.#early) this.#write(client, this.#early, this.#early);
    upstream.resume();
  }

  /** Never returns a buffer that is still being written. */
  #next(): Uint8Array {
    this.#current =
      (this.#filled && this.#isReleased ? this.#large.take() : undefined) ?? Buffer.allocUnsafeSlow(little);
    return this.#current;
  }

  /** Whether the client keeps nothing of what was written to it; any stream may. */
  get #isReleased(): boolean {
    const client = this.#client;
    if (client instanceof Socket) return !(client instanceof TLSSocket);
    return client !== undefined && this.#large.releasedBy.has(client);
  }

  #arrived(length: number, buffer: Uint8Array): boolean {
    this.#filled = length === buffer.length || (buffer.length > little && length > little);
    const piece = buffer.subarray(0, length);
    if (this.#client) return this.#write(this.#client, piece, buffer);
    this.#early = piece;
    return false;
  }

  /** Returns whether there is room for more. */
  #write(client: Duplex, piece: Uint8Array, buffer: Uint8Array): boolean {
    this.#onTheWay += 1;
    client.write(piece, () => {
      this.#onTheWay -= 1;
      this.#giveBack(buffer);
      this.#resume();
    });
    return this.#onTheWay < mostOnTheWay;
  }

  #giveBack(buffer: Uint8Array | undefined): void {
    if (buffer instanceof Buffer && buffer.length === much) this.#large.give(buffer);
  }
}
