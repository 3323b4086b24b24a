import { randomBytes } from "node:crypto";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { FileNotFoundError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import type { BlockEvent, BlockOutcome } from "../run/block-run.ts";
import { type BackendFiles, wholeFile } from "../workspace/backend-files.ts";
import { longestInput } from "./call-frames.ts";

/** Interval between polls in milliseconds: while something happens, and at most. */
const [firstPauseMs, longestPauseMs] = [3, 100];
/** Maximum number of connections that a block's programs may announce; the block's calls allow fewer at a time. */
const mostConnections = 512;
/** Bytes of a connection that may be buffered before its next file is read. */
const mostWaiting = 2 * longestInput;
/** The largest file that a stub writes. */
const longestFile = longestInput + 1024;
/** Number of unread answers at which the next one has to wait. */
const mostUnread = 8;
/** Milliseconds that may pass between creating an announcement and writing its content. */
const announcingMs = 2000;
/** Time limit for removing a block's files in milliseconds. */
const cleanUpMs = 5000;

const prefix = ".fenced-calls-";

/** True if a workspace file carries calls of host functions. */
export function isCallFile(path: string): boolean {
  return path.startsWith(prefix);
}

/**
 * Carries connections of one block's programs in workspace files, for places that can only run code and move files. A
 * program announces itself in the next file `c0`, `c1`, …, and then writes what it sends to its own files `r0`, `r1`,
 * …, each put in place by renaming; answers are in `a0`, `a1`, …, each with its length. The code can change all of
 * these files, but gains nothing that it could not send anyway, since a connection has to present a token.
 */
export class FileCalls {
  readonly #files: BackendFiles;
  readonly #accept: (connection: Duplex) => void;
  readonly #base: string = `${prefix}${randomBytes(8).toString("hex")}`;
  readonly #connections = new Map<string, FileConnection>();
  readonly #ending = new AbortController();
  readonly #writing = new Set<Promise<void>>();
  #announced = 0;
  /** When the next announcement was first seen without content. */
  #reservedAt: number | undefined;

  /** @param accept - takes each connection. */
  constructor(files: BackendFiles, accept: (connection: Duplex) => void) {
    this.#files = files;
    this.#accept = accept;
  }

  /**
   * Where programs find the files: the name of the first one, in the block's working directory or a directory above it.
   */
  get address(): string {
    return `files:${this.#base}`;
  }

  /** Passes on a block's events, and carries its programs' calls until it ends. */
  async *during(
    events: AsyncGenerator<BlockEvent, BlockOutcome, void>,
  ): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    await this.#files.write(this.#base, "");
    void this.#watch();
    try {
      return yield* events;
    } finally {
      this.#ending.abort();
      await within(cleanUpMs, this.#cleanUp());
    }
  }

  async #watch(): Promise<void> {
    const { signal } = this.#ending;
    for (let pause = firstPauseMs; !signal.aborted;) {
      const found = await this.#look().catch(() => false);
      pause = found ? firstPauseMs : Math.min(pause * 1.5, longestPauseMs);
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
  }

  /** Reads what has arrived. @returns whether there was something. */
  async #look(): Promise<boolean> {
    let found = this.#announced < mostConnections && (await this.#welcome());
    for (const [name, connection] of this.#connections) found = (await this.#receive(name, connection)) || found;
    return found;
  }

  /** Reads what a connection has sent. @returns whether there was something. */
  async #receive(name: string, connection: FileConnection): Promise<boolean> {
    let found = false;
    while (connection.readableLength <= mostWaiting && this.#connections.get(name) === connection) {
      const file = `${name}-r${connection.received}`;
      const bytes = await this.#read(file);
      if (bytes === undefined) break;
      found = true;
      connection.arrived(bytes);
      await untilAborted(this.#files.remove(`${this.#base}-${file}`), this.#ending.signal);
    }
    return found;
  }

  /** Opens the next connection that a program has announced. @returns whether there is one. */
  async #welcome(): Promise<boolean> {
    const name = await this.#read(`c${this.#announced}`);
    if (name === undefined) return false;
    this.#reservedAt ??= performance.now();
    // A program that died after reserving the number writes nothing more.
    if (name.length === 0 && performance.now() < this.#reservedAt + announcingMs) return true;
    this.#announced += 1;
    this.#reservedAt = undefined;
    this.#open(name.toString("latin1"));
    return true;
  }

  #open(name: string): void {
    // Anything else did not come from a stub.
    if (!/^[0-9a-f]{32}$/.test(name) || this.#connections.has(name)) return;
    const connection = new FileConnection({
      put: (number, bytes) => this.#put(`${name}-a${number}`, bytes),
      isRead: async (number) => (await this.#read(`${name}-a${number}`, 1)) === undefined,
      left: () => this.#connections.delete(name),
      signal: this.#ending.signal,
    });
    this.#connections.set(name, connection);
    this.#accept(connection);
  }

  /**
   * Returns `undefined` if there is no such file. Content that no stub would write is not a valid frame, so it ends the
   * connection.
   */
  async #read(name: string, most: number = longestFile): Promise<Buffer | undefined> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    const reading = (async () => {
      for await (const piece of this.#files.content(`${this.#base}-${name}`, wholeFile)) {
        pieces.push(Buffer.from(piece.subarray(0, most - length)));
        length += piece.length;
        if (length >= most) return;
      }
    })();
    try {
      await untilAborted(reading, this.#ending.signal);
      return Buffer.concat(pieces);
    } catch (error) {
      if (FileNotFoundError.isInstance(error)) return undefined;
      throw error;
    }
  }

  async #put(name: string, bytes: Buffer): Promise<void> {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(bytes.length);
    const { signal } = this.#ending;
    signal.throwIfAborted();
    const writing = this.#files.write(`${this.#base}-${name}`, Buffer.concat([head, bytes]));
    this.#writing.add(writing);
    try {
      await untilAborted(writing, signal);
    } finally {
      // A write that is given up may still leave a file behind.
      if (!signal.aborted) this.#writing.delete(writing);
    }
  }

  /** Removes the remaining files; never rejects. */
  async #cleanUp(): Promise<void> {
    for (const connection of this.#connections.values()) connection.destroy();
    await Promise.allSettled(this.#writing);
    const listed = await this.#files.list().catch(() => []);
    for (const { path } of [{ path: this.#base }, ...listed.filter((each) => each.path.startsWith(`${this.#base}-`))]) {
      await this.#files.remove(path).catch(() => {});
    }
  }
}

/** How a connection writes files. */
interface FileLine {
  readonly put: (number: number, bytes: Buffer) => Promise<void>;
  readonly isRead: (number: number) => Promise<boolean>;
  /** Called when the connection is done. */
  readonly left: () => void;
  readonly signal: AbortSignal;
}

/** One program's connection. */
class FileConnection extends Duplex {
  /** Files received so far. */
  received = 0;
  readonly #line: FileLine;
  #sent = 0;

  constructor(line: FileLine) {
    super({ allowHalfOpen: false });
    this.#line = line;
  }

  /** Handles a received file. */
  arrived(bytes: Buffer): void {
    this.received += 1;
    if (bytes.length > 0) this.push(bytes);
    else this.push(null);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: BufferEncoding, wrote: (error?: Error | null) => void): void {
    this.#send(chunk).then(
      () => wrote(),
      (error: unknown) => wrote(error instanceof Error ? error : new Error(String(error))),
    );
  }

  override _final(ended: () => void): void {
    // Nothing follows, so end the program's side of the connection, too.
    void this.#end().finally(ended);
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    this.#line.left();
    if (!this.writableFinished) void this.#end();
    destroyed(error);
  }

  /** Tells the program that nothing follows, if that is still possible. */
  async #end(): Promise<void> {
    await this.#send(Buffer.alloc(0)).catch(() => {});
  }

  /** Writes the next answer once the program has read most of the earlier ones. */
  async #send(bytes: Buffer): Promise<void> {
    const { put, isRead, signal } = this.#line;
    const number = this.#sent;
    this.#sent += 1;
    let pause = firstPauseMs;
    let room = number < mostUnread || (await isRead(number - mostUnread));
    while (!room) {
      await sleep(pause, undefined, { signal });
      pause = Math.min(pause * 2, longestPauseMs);
      room = await isRead(number - mostUnread);
    }
    await put(number, bytes);
  }
}
