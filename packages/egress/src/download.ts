import { type OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** Bytes that are read at once from a connection that has little to say, and from one that has much. */
const [little, much] = [65_536, 1_048_576];
/** Large buffers of a proxy at a time; they bound its memory, whatever its clients leave unread. */
const mostLarge = 32;
/** Of these, how many are kept for the next download. */
const mostFree = 4;
/** Pieces on the way to a client. Another one would only use memory: one is being written, and one is read meanwhile. */
const mostOnTheWay = 2;

/** The large buffers that the connections of a proxy share. */
export class LargeBuffers {
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
 * What comes from a host, on its way to a client, at the client's pace. Reads that fill their buffer are followed by larger
 * ones, which halves the time of a large download against `pipe`.
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
  /** What a host said before anybody asked it. */
  #early: Uint8Array | undefined;
  #filled = false;
  #onTheWay = 0;

  constructor(large: LargeBuffers) {
    this.#large = large;
  }

  /** Passes everything on, the end of it as well. */
  passTo(client: Duplex, upstream: Socket): void {
    this.#client = client;
    this.#resume = () => void upstream.resume();
    upstream.once("end", () => client.end());
    upstream.once("close", () => this.#giveBack(this.#current));
    if (this.#early) this.#write(client, this.#early, this.#early);
    upstream.resume();
  }

  /** A buffer must not be read into again before it was written. */
  #next(): Uint8Array {
    // Any other stream may keep what is written to it.
    const isSocket = this.#client instanceof Socket && !(this.#client instanceof TLSSocket);
    this.#current = (this.#filled && isSocket ? this.#large.take() : undefined) ?? Buffer.allocUnsafeSlow(little);
    return this.#current;
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
