import { createHmac, timingSafeEqual } from "node:crypto";

/** The two sides of a connection: each signs with a key of its own. */
type Side = "from program" | "from session";

export const linkMagic: Buffer = Buffer.from("FENCED-LINK1\n");
const startMagic: Buffer = Buffer.from("FENCED-START\n");

/** Kinds of packets; see `packets.py`, which describes them. */
export const packetKind = { data: 1, ack: 2, ping: 3, pong: 4, verdict: 5, gone: 6, detach: 7, end: 8 } as const;

/** What the session says to a program that has proved that it knows the key. */
export const verdict = { accepted: 0, inUse: 1, replaced: 2, unknown: 3 } as const;

export const nonceBytes = 16;
export const proofBytes = 32;
const macBytes = 16;
const headBytes = 17;
/** Maximum number of bytes of the session in one packet. */
export const pieceBytes = 262_144;

/** What a program says first on a connection. */
export interface Greeting {
  readonly program: Uint8Array;
  readonly nonce: Uint8Array;
  readonly takeOver: boolean;
  /** It has been connected before. */
  readonly isKnown: boolean;
  /** Bytes of the session that it has received. */
  readonly received: number;
}

/** Encodes what precedes the greeting on the very first connection. */
export function encodeStart(key: Uint8Array, keepAliveMs: number): Buffer {
  const limit = Buffer.alloc(8);
  limit.writeBigUInt64BE(BigInt(keepAliveMs));
  return Buffer.concat([startMagic, key, limit]);
}

/** Encodes a greeting without its magic. */
export function encodeGreeting({ program, nonce, takeOver, isKnown, received }: Greeting): Buffer {
  const rest = Buffer.alloc(9);
  rest.writeUInt8((takeOver ? 1 : 0) | (isKnown ? 2 : 0), 0);
  rest.writeBigUInt64BE(BigInt(received), 1);
  return Buffer.concat([program, nonce, rest]);
}

/** Proves knowledge of the key, or makes a key for one side of a connection. */
export function prove(
  key: Uint8Array,
  label: Side | "session" | "program",
  greeting: Uint8Array,
  nonce: Uint8Array,
): Buffer {
  return createHmac("sha256", key).update(label).update(greeting).update(nonce).digest();
}

/** Compares in constant time. */
export function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Makes packets for one side of a connection. */
export class PacketWriter {
  readonly #key: Uint8Array;
  #count = 0n;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** @param received - bytes that this side has received in all. */
  packet(kind: number, received: number, payload: Uint8Array = new Uint8Array()): Buffer {
    const packet = Buffer.allocUnsafe(4 + headBytes + payload.length + macBytes);
    packet.writeUInt32BE(packet.length - 4, 0);
    packet.writeBigUInt64BE(this.#count, 4);
    packet.writeUInt8(kind, 12);
    packet.writeBigUInt64BE(BigInt(received), 13);
    packet.set(payload, 4 + headBytes);
    packet.set(mac(this.#key, packet.subarray(4, packet.length - macBytes)), packet.length - macBytes);
    this.#count += 1n;
    return packet;
  }
}

/** A packet; its payload is in the memory of what was pushed. */
export interface Packet {
  readonly kind: number;
  readonly received: number;
  readonly payload: Buffer;
}

/** Takes packets out of chunks of any size. */
export class PacketReader {
  readonly #key: Uint8Array;
  #count = 0n;
  #rest: Buffer[] = [];
  #length = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /**
   * Returns the packets that are complete.
   *
   * @throws Error if something else has written one.
   */
  push(chunk: Buffer): Packet[] {
    this.#rest.push(chunk);
    this.#length += chunk.length;
    const packets: Packet[] = [];
    for (let next = this.#next(); next; next = this.#next()) packets.push(next);
    return packets;
  }

  #next(): Packet | undefined {
    if (this.#length < 4) return undefined;
    const size = this.#peek(4).readUInt32BE(0);
    const isPossible = size >= headBytes + macBytes && size <= headBytes + pieceBytes + macBytes;
    if (!isPossible) throw new Error("a packet is not valid");
    if (this.#length < size + 4) return undefined;
    const packet = this.#peek(size + 4);
    this.#rest = this.#length === packet.length ? [] : [this.#whole().subarray(packet.length)];
    this.#length -= packet.length;
    const body = packet.subarray(4, packet.length - macBytes);
    const proof = packet.subarray(packet.length - macBytes);
    if (body.readBigUInt64BE(0) !== this.#count || !isSame(mac(this.#key, body), proof)) {
      throw new Error("a packet was not written by the session");
    }
    this.#count += 1n;
    return { kind: body.readUInt8(8), received: Number(body.readBigUInt64BE(9)), payload: body.subarray(headBytes) };
  }

  /** Returns the first bytes. */
  #peek(size: number): Buffer {
    const [first] = this.#rest;
    return first && first.length >= size ? first.subarray(0, size) : this.#whole().subarray(0, size);
  }

  #whole(): Buffer {
    const [first] = this.#rest;
    const whole = first && this.#rest.length === 1 ? first : Buffer.concat(this.#rest);
    this.#rest = [whole];
    return whole;
  }
}

function mac(key: Uint8Array, body: Uint8Array): Buffer {
  return createHmac("sha256", key).update(body).digest().subarray(0, macBytes);
}
