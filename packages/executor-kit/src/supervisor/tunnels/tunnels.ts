import { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { frameType } from "../wire/wire.ts";

/** The purposes of connections, as numbered in frames. */
const kinds = { calls: 0, network: 1, port: 2 } as const;
type TunnelKind = (typeof kinds)[keyof typeof kinds];

/** Maximum number of bytes in transit to a program; they use memory where the supervisor runs. */
const windowBytes: Readonly<Record<TunnelKind, number>> = {
  [kinds.calls]: 1_048_576,
  [kinds.network]: 262_144,
  [kinds.port]: 262_144,
};
/** Bytes that the supervisor may send before they are consumed, including a frame that it has begun. */
const mostWaiting = 1_048_576;
/** Number of consumed bytes after which to tell the supervisor; less than it may send ahead. */
const creditStep = 65_536;
const longestPiece = 65_536;
/** Maximum number of simultaneous connections. An honest supervisor has fewer. */
const mostTunnels = 512;

/** The supervisor's connections have lower numbers; those of this process start here. */
const firstOwn = 0x8000_0000;

/** Sends a frame to the supervisor; returns whether there is room for more. */
export type SendFrame = (type: number, number: number, payload?: Uint8Array) => boolean;

/**
 * Sends a frame to the supervisor without copying its payload, whose memory is in use until `sent` is called. Returns
 * whether there is room for more.
 */
export type SendPiece = (type: number, number: number, payload: Uint8Array, sent: () => void) => boolean;

/** Where programs find the proxy. */
export interface NetworkEntrance {
  /** A port of 127.0.0.1 where the supervisor runs. */
  readonly port: number;
  /**
   * Path, where the supervisor runs, of a file with all certificates that programs should trust; absent if none were
   * added.
   */
  readonly authorities?: string;
}

/** A caller that waits for an entrance. */
interface Opening {
  readonly resolve: (answer: string) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Connections of programs where the supervisor runs, each as a stream in this process. Other helpers there can use the
 * same frames over any channel that delivers bytes in order.
 */
export class Tunnels {
  readonly #sendFrame: SendFrame;
  readonly #sendPiece: SendPiece;
  readonly #open = new Map<number, Tunnel>();
  readonly #opening: Opening[] = [];
  readonly #accept = new Map<number, (connection: Duplex) => void>();
  /** Tunnels that could send more if there were room; they take turns. */
  readonly #waiting = new Set<Tunnel>();
  #full = false;
  #last = 0;

  /**
   * @param send - sends each frame to the other side, in order.
   * @param sendPiece - does that for the bytes of connections. Default: `send`, which must then copy them.
   */
  constructor(send: SendFrame, sendPiece?: SendPiece) {
    this.#sendFrame = send;
    this.#sendPiece =
      sendPiece ??
      ((type, number, payload, sent) => {
        const room = send(type, number, payload);
        sent();
        return room;
      });
  }

  async openCalls(accept: (connection: Duplex) => void): Promise<string> {
    const answer = await this.#listen(kinds.calls, accept);
    const [, what, place = ""] = /^(socket|address) (.+)$/s.exec(answer) ?? [];
    if (what === undefined) throw notListening("The socket for host functions", answer);
    return what === "socket" ? `unix:${place}` : place;
  }

  async openNetwork(accept: (connection: Duplex) => void, authorities = ""): Promise<NetworkEntrance> {
    const answer = await this.#listen(kinds.network, accept, Buffer.from(authorities));
    const [, port, file = ""] = /^port (\d{1,5}) ([^\0]*)$/.exec(answer) ?? [];
    if (port === undefined) throw notListening("The port for the proxy", answer);
    return { port: Number(port), ...(file === "" ? {} : { authorities: file }) };
  }

  /** Connects to a loopback port there; if nothing listens on it, the connection ends. */
  connect(port: number): Duplex {
    this.#last = (this.#last + 1) % (firstOwn - 1);
    const number = firstOwn + this.#last;
    if (this.#open.has(number) || this.#open.size >= mostTunnels) {
      throw new BackendUnavailableError(`There are too many connections; the limit is ${mostTunnels} at a time`, {
        remedy: "Close some connections first.",
      });
    }
    const tunnel = this.#add(number, kinds.port);
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(port);
    this.#send(frameType.tunnelConnect, number, payload);
    return tunnel;
  }

  /**
   * Handles a message from the supervisor.
   *
   * @throws Error if it is invalid.
   */
  report(type: number, number: number, payload: Buffer): void {
    if (type === frameType.listening) this.#opening.shift()?.resolve(payload.toString());
    else if (type === frameType.tunnelOpen) this.#begin(number, payload.readUInt8(0));
    else if (type === frameType.tunnelData) this.#open.get(number)?.arrived(payload);
    else if (type === frameType.tunnelTaken) this.#open.get(number)?.taken(payload.readUInt32BE(0));
    else if (type === frameType.tunnelEnded) this.#open.get(number)?.ended();
    else this.#open.get(number)?.finish();
  }

  /** Call this when there is room again. */
  resume(): void {
    this.#full = false;
    for (const tunnel of this.#waiting) {
      this.#waiting.delete(tunnel);
      tunnel.sendOn();
      if (this.#isFull()) return;
    }
  }

  /** Call this when the supervisor, and with it all connections, is lost. */
  fail(error: Error): void {
    for (const { reject } of this.#opening.splice(0)) reject(error);
    for (const tunnel of this.#open.values()) tunnel.destroy();
  }

  #listen(kind: TunnelKind, accept: (connection: Duplex) => void, payload?: Uint8Array): Promise<string> {
    this.#accept.set(kind, accept);
    return new Promise((resolve, reject) => {
      this.#opening.push({ resolve, reject });
      this.#send(frameType.listen, kind, payload);
    });
  }

  #begin(number: number, kind: number): void {
    const accept = this.#accept.get(kind);
    if (this.#open.has(number)) throw new Error("the supervisor opened an impossible connection");
    // What an earlier program has left running may connect before this one listens, if it ever does.
    if (!accept || this.#open.size >= mostTunnels) {
      this.#send(frameType.tunnelDrop, number);
      return;
    }
    accept(this.#add(number, kind === kinds.network ? kinds.network : kinds.calls));
  }

  #add(number: number, kind: TunnelKind): Tunnel {
    const tunnel: Tunnel = new Tunnel(kind, {
      send: (type, payload) => this.#send(type, number, payload),
      sendPiece: (payload, sent) => {
        if (!this.#sendPiece(frameType.tunnelWrite, number, payload, sent)) this.#full = true;
      },
      hasRoom: () => this.#hasRoom(tunnel),
      left: () => {
        this.#open.delete(number);
        this.#waiting.delete(tunnel);
      },
    });
    this.#open.set(number, tunnel);
    return tunnel;
  }

  #isFull(): boolean {
    return this.#full;
  }

  #hasRoom(tunnel: Tunnel): boolean {
    if (this.#full) this.#waiting.add(tunnel);
    return !this.#full;
  }

  #send(type: number, number: number, payload?: Uint8Array): void {
    if (!this.#sendFrame(type, number, payload)) this.#full = true;
  }
}

/** A connection's access to the stream to the supervisor. */
interface TunnelLine {
  readonly send: (type: number, payload?: Uint8Array) => void;
  readonly sendPiece: (payload: Uint8Array, sent: () => void) => void;
  /** Returns whether a piece may be sent; if not, `sendOn` is called once it may. */
  readonly hasRoom: () => boolean;
  /** Called when the connection is done. */
  readonly left: () => void;
}

/** One connection. */
class Tunnel extends Duplex {
  readonly #line: TunnelLine;
  readonly #window: number;
  #owed = 0;
  #onWay = 0;
  #rest: Buffer = Buffer.alloc(0);
  #wrote: (() => void) | undefined;
  /** Pieces whose memory is still in use. */
  #unsent = 0;
  #isSending = false;
  /** True if the program has sent everything. */
  #heard = false;
  #over = false;

  constructor(kind: TunnelKind, line: TunnelLine) {
    // On the network, a side that has ended can still receive what the other sends.
    super({ allowHalfOpen: kind !== kinds.calls });
    this.#window = windowBytes[kind];
    this.#line = line;
  }

  /** Handles a received piece. */
  arrived(bytes: Buffer): void {
    this.#owed += bytes.length;
    if (this.#heard || this.readableLength + bytes.length > mostWaiting) this.destroy();
    else this.push(bytes);
  }

  /** The program has accepted `bytes` more bytes. */
  taken(bytes: number): void {
    this.#onWay = Math.max(0, this.#onWay - bytes);
    this.sendOn();
  }

  /** The program sends nothing more, but may still receive. */
  ended(): void {
    if (!this.#heard) this.push(null);
    this.#heard = true;
  }

  /** The program is gone: nothing more arrives, and what is sent is lost. */
  finish(): void {
    this.#over = true;
    if (this.allowHalfOpen && !(this.#heard && this.writableEnded)) this.destroy();
    else this.ended();
    this.sendOn();
  }

  /** Sends what is waiting, as long as the program accepts it and there is room. */
  sendOn(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    while (!this.#over && this.#rest.length > 0 && this.#onWay < this.#window && this.#line.hasRoom()) {
      const piece = this.#rest.subarray(0, Math.min(longestPiece, this.#window - this.#onWay));
      this.#rest = this.#rest.subarray(piece.length);
      this.#onWay += piece.length;
      this.#unsent += 1;
      this.#line.sendPiece(piece, () => {
        this.#unsent -= 1;
        this.#settle();
      });
    }
    this.#isSending = false;
    this.#settle();
  }

  /** Asks for more once everything has been sent, and its memory may be used again. */
  #settle(): void {
    if (this.#isSending || this.#unsent > 0 || (!this.#over && this.#rest.length > 0)) return;
    this.#rest = Buffer.alloc(0);
    const wrote = this.#wrote;
    this.#wrote = undefined;
    wrote?.();
  }

  override _read(): void {
    if (this.#owed < creditStep) return;
    const credit = Buffer.alloc(4);
    credit.writeUInt32BE(this.#owed);
    this.#owed = 0;
    this.#line.send(frameType.tunnelCredit, credit);
  }

  override _write(chunk: Buffer, _: BufferEncoding, wrote: () => void): void {
    this.#rest = chunk;
    this.#wrote = wrote;
    this.sendOn();
  }

  override _final(ended: () => void): void {
    if (!this.#over) this.#line.send(frameType.tunnelEnd);
    ended();
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    if (!this.#over) this.#line.send(frameType.tunnelDrop);
    this.#over = true;
    this.#line.left();
    this.sendOn();
    destroyed(error);
  }
}

function notListening(what: string, answer: string): BackendUnavailableError {
  return new BackendUnavailableError(
    `${what} could not be created: ${answer.replace(/^problem /, "").slice(0, 1000)}`,
    {
      remedy:
        "Make sure that files and sockets can be created in the session's directory, usually below /tmp, and that the loopback interface is up.",
    },
  );
}
