import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { connect, type Socket } from "node:net";

/**
 * The types of frames between host and supervisor: up to 15 and from 64 on to the supervisor, those in between to the
 * host.
 */
export const frameType = {
  run: 1,
  input: 2,
  kill: 3,
  credit: 4,
  reset: 5,
  listen: 6,
  tunnelWrite: 7,
  tunnelCredit: 8,
  tunnelEnd: 9,
  tunnelDrop: 10,
  warm: 11,
  file: 12,
  ping: 13,
  tunnelConnect: 14,
  feed: 15,
  hello: 16,
  stdout: 17,
  stderr: 18,
  exit: 19,
  done: 20,
  listening: 21,
  tunnelOpen: 22,
  tunnelData: 23,
  tunnelClosed: 24,
  tunnelTaken: 25,
  tunnelEnded: 26,
  pong: 27,
  fed: 28,
  rich: 29,
  sessionTold: 30,
  sessionEnded: 31,
  /** A part of a display, in a place without back-pressure for displays: 1 if it is the last part, else 0, then bytes. */
  display: 32,
  measured: 33,
  /** An entry of the log of a submitted run: its number (8 bytes), kind (1), whether it is complete (1), and its content. */
  runEntry: 34,
  runTold: 35,
  /** A part of a call of a host function: its key (8 bytes), the block (4), whether it is complete (1), and its content. */
  runCall: 36,
  /** A program beside blocks runs: its process id (4 bytes). */
  started: 37,
  /** A program that an earlier host has started, see `LeftProgram`; empty after the last one. */
  program: 38,
  /** What the place uses, as lines of a name and a number. */
  used: 39,
  session: 64,
  measure: 65,
  runs: 66,
  /** Resizes a program's terminal, or sends it a signal. */
  control: 67,
  programs: 68,
  /** The host reads the output of such a program from now on: credit (4 bytes). */
  hear: 69,
  usage: 70,
} as const;

/** The same table for Python, as the module `_fenced_wire`: `TUNNEL_WRITE = 7`. */
export const wireModule: string = Object.entries(frameType)
  .map(([name, type]) => `${name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()} = ${type}\n`)
  .join("");

/** Precedes the first frame to the supervisor. */
export const hostMagic = "FENCED-HOST\n";

/** Length (4 bytes, of everything that follows), type (1), number of the block or call (4), all big-endian. */
export const headerSize = 9;
/** Maximum length of a supervisor's report; anything longer was written by something else. */
const longestReport = 1_048_576;

const pieceBytes = 262_144;

/** Splits what may be too long for one frame's payload; yields at least one piece. */
export function* framePieces(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  const most = Math.max(1, bytes.length);
  for (let at = 0; at < most; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** Encodes a frame. */
export function encodeFrame(type: number, number: number, payload: Uint8Array = new Uint8Array()): Buffer {
  return Buffer.concat([encodeHeader(type, number, payload.length), payload]);
}

/** Encodes what precedes a frame's payload of this length. */
export function encodeHeader(type: number, number: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(headerSize);
  header.writeUInt32BE(length + headerSize - 4, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32BE(number, 5);
  return header;
}

/** The kinds of a block's output; `rich` is for displays, see `DisplayMessages`. */
export type OutputName = "stdout" | "stderr" | "rich";

const outputNames: ReadonlyMap<number, OutputName> = new Map([
  [frameType.stdout, "stdout"],
  [frameType.stderr, "stderr"],
  [frameType.rich, "rich"],
]);

/** Receives what a `FrameReader` reads. */
export interface FrameConsumer {
  /** Receives a piece of a block's output, in the memory of the chunk that contained it, which may be reused. */
  output(type: OutputName, block: number, bytes: Buffer): void;
  /** Receives a complete frame of another type, in memory of its own. */
  report(type: number, block: number, payload: Buffer): void;
}

/** Reads frames from chunks of any size. Passes output on as it arrives, without waiting for the whole frame. */
export class FrameReader {
  readonly #consumer: FrameConsumer;
  readonly #header = Buffer.alloc(headerSize);
  #headerUsed = 0;
  /** What the header says. */
  #type = 0;
  #outputName: OutputName | undefined;
  #left = 0;
  #report: Buffer[] = [];

  constructor(consumer: FrameConsumer) {
    this.#consumer = consumer;
  }

  /**
   * @param chunk - its memory can be reused once this returns.
   * @throws Error if this is not a supervisor's frame.
   */
  push(chunk: Buffer): void {
    for (let rest = chunk; rest.length > 0;) {
      if (this.#headerUsed < headerSize) {
        const taken = rest.copy(this.#header, this.#headerUsed);
        this.#headerUsed += taken;
        rest = rest.subarray(taken);
        if (this.#headerUsed === headerSize) this.#begin();
      } else {
        const piece = rest.subarray(0, this.#left);
        rest = rest.subarray(piece.length);
        this.#take(piece);
      }
    }
  }

  #begin(): void {
    this.#left = this.#header.readUInt32BE(0) - (headerSize - 4);
    this.#type = this.#header.readUInt8(4);
    this.#outputName = outputNames.get(this.#type);
    const known = this.#type >= frameType.hello && this.#type <= frameType.used;
    if (!known || this.#left < 0 || (this.#outputName === undefined && this.#left > longestReport)) {
      throw new Error("the supervisor's stream is not valid");
    }
    if (this.#left === 0) this.#end();
  }

  #take(piece: Buffer): void {
    this.#left -= piece.length;
    const name = this.#outputName;
    if (name !== undefined) {
      this.#consumer.output(name, this.#header.readUInt32BE(5), piece);
    } else {
      this.#report.push(Buffer.from(piece));
    }
    if (this.#left === 0) this.#end();
  }

  #end(): void {
    this.#headerUsed = 0;
    if (this.#outputName !== undefined) return;
    const [first] = this.#report;
    const payload = first && this.#report.length === 1 ? first : Buffer.concat(this.#report);
    this.#report = [];
    this.#consumer.report(this.#type, this.#header.readUInt32BE(5), payload);
  }
}

/** Linux: refers to a file without opening it, whatever it is. Node has no constant for it. See open(2). */
const O_PATH = 0o10000000;
/** Maximum size of one read. */
const bufferSize = 262_144;

/** A connection that bypasses a daemon. */
export interface DirectConnection {
  readonly socket: Socket;
  /** Passes on what arrives from now on; anything earlier is dropped. */
  readonly receive: (take: Receiver) => void;
}

/** Receives bytes, whose memory may be reused afterwards. */
export type Receiver = (bytes: Buffer) => void;

/**
 * Connects to the socket that the supervisor created in a shared directory, so that its data does not pass through a
 * daemon, which copies everything three times. Never follows a link, because others with access to the directory could
 * lead this process to another socket of this host, for example the daemon's.
 *
 * @returns `undefined` if that does not work, for example between a virtual machine and its host.
 */
export async function connectDirectly(file: string): Promise<DirectConnection | undefined> {
  if (process.platform !== "linux") return undefined;
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, O_PATH | constants.O_NOFOLLOW);
    if (!(await handle.stat()).isSocket()) return undefined;
    // The handle refers to exactly that file, and provides a name short enough for a socket address.
    return await connected(`/proc/self/fd/${handle.fd}`);
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

function connected(file: string): Promise<DirectConnection> {
  // One buffer, since receivers keep nothing of it: a gigabyte of output creates no garbage.
  const buffer = Buffer.allocUnsafeSlow(bufferSize);
  let take: Receiver = () => {};
  const callback = (count: number): boolean => {
    take(buffer.subarray(0, count));
    return true;
  };
  const socket = connect({ path: file, onread: { buffer, callback } });
  return new Promise((resolve, reject) => {
    socket.once("connect", () => {
      socket.resume();
      resolve({ socket, receive: (receiver) => (take = receiver) });
    });
    socket.once("error", reject);
  });
}
