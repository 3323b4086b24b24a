import net from "node:net";
import type { Readable } from "node:stream";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import type { StreamName } from "../output/kept-output.ts";
import type { BlockEvent } from "./block-run.ts";

/** Bytes that may wait for a slow consumer before the streams, and in the end the program, are made to wait. */
const highWaterMark = 262_144;
/** More than pipes can hold: what still writes after that is a process that the block left running. */
const mostAfterEnd = 4_194_304;
const pausedMs = 10;
/** Smaller pieces are copied: they would hold shared memory many times their size for as long as they wait. */
const smallPiece = 65_536;

/** Memory that is read into again when nobody uses what it holds. */
export interface SharedMemory {
  /** Somebody keeps a piece of it, for longer than the call in which it was handed out. */
  hold(): void;
  /** One of those who keep a piece has done with it. */
  release(): void;
}

interface Piece {
  readonly event: { readonly type: StreamName; readonly data: Uint8Array };
  readonly memory: SharedMemory | undefined;
}

/** Who hears what becomes of the output. */
export interface OutputWatcher {
  /** Told about the bytes that were consumed. */
  readonly taken?: (bytes: number) => void;
  /** Told that nothing more is read, since the consumer has everything or has left. */
  readonly left?: () => void;
}

/**
 * What a block put out and nobody has taken yet: turns streams that push into the generator that `run` has to be.
 * While too much waits, the streams are paused.
 *
 * @example
 * const output = new OutputQueue<BlockOutcome>();
 * output.follow("stdout", child.stdout);
 * output.follow("stderr", child.stderr);
 * child.on("error", (error) => output.fail(error));
 * child.on("close", (code) => output.end({ exitCode: code ?? 137 }));
 * return yield* output.events();
 */
export class OutputQueue<Outcome> {
  readonly #streams: Readable[] = [];
  #queue: Piece[] = [];
  #outcome: { readonly value: Outcome } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #waiting = 0;
  #arrived = 0;
  #wake: () => void = () => {};

  /**
   * Takes all that a stream gives, until the block's end; what comes later is read and dropped, so that a
   * process that still writes is not held up.
   *
   * @param transform - makes pieces of output from what came in. Default: it is output as it is.
   */
  follow(type: StreamName, stream: Readable, transform: (bytes: Buffer) => readonly Uint8Array[] = asItIs): void {
    this.#streams.push(stream);
    stream.on("data", (bytes: Buffer) => {
      for (const piece of transform(bytes)) this.push(type, piece);
    });
  }

  /** Bytes that nobody has taken yet. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Adds a piece of output.
   *
   * @param shared - the memory that `data` lies in, if it is used again; held until the piece is consumed. Default: it is not.
   */
  push(type: StreamName, data: Uint8Array, shared?: SharedMemory): void {
    if (data.length === 0 || this.#over) return;
    const memory = data.length < smallPiece ? undefined : shared;
    memory?.hold();
    this.#queue.push({ event: { type, data: shared && !memory ? Buffer.from(data) : data }, memory });
    this.#waiting += data.length;
    this.#arrived += data.length;
    if (this.#waiting > highWaterMark) for (const stream of this.#streams) stream.pause();
    this.#wake();
  }

  /** The block has ended, and all of its output is here. Only the first end or failure counts. */
  end(value: Outcome): void {
    if (this.#over) return;
    this.#outcome = { value };
    this.#wake();
  }

  /** Nobody will ever know how the block ended. */
  fail(error: unknown): void {
    if (this.#over) return;
    this.#failure = { error };
    this.#wake();
  }

  /**
   * Waits until everything is here that was written before now, though a process may hold the streams open: until the
   * system has nothing more to read. A consumer that does not read makes it wait.
   */
  async drained(): Promise<void> {
    let left = mostAfterEnd;
    for (let idle = 0; idle < 3 && left > 0 && !this.#over;) {
      const before = this.#arrived;
      // After a whole turn of the event loop, what could be read has been.
      await turn();
      const paused = this.#streams.some((stream) => stream.isPaused() && !stream.readableEnded);
      if (paused) await sleep(pausedMs);
      idle = paused || this.#arrived > before ? 0 : idle + 1;
      left -= this.#arrived - before;
    }
  }

  /**
   * Everything that the block puts out, then how it ended.
   *
   * @throws what `fail` was given, once the output before it is consumed.
   */
  async *events({ taken, left }: OutputWatcher = {}): AsyncGenerator<BlockEvent, Outcome, void> {
    try {
      for (;;) {
        const batch = this.#queue;
        this.#queue = [];
        for (const { event, memory } of batch) {
          yield event;
          memory?.release();
          this.#taken(event.data.length);
          taken?.(event.data.length);
        }
        if (this.#queue.length > 0) continue;
        if (this.#outcome) return this.#outcome.value;
        if (this.#failure) throw this.#failure.error;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      left?.();
      // What a process in the background goes on writing is read and dropped, and does not keep this program alive.
      for (const stream of this.#streams) {
        stream.resume();
        if (stream instanceof net.Socket) stream.unref();
      }
    }
  }

  get #over(): boolean {
    return this.#outcome !== undefined || this.#failure !== undefined;
  }

  #taken(bytes: number): void {
    this.#waiting -= bytes;
    if (this.#waiting > highWaterMark / 2) return;
    for (const stream of this.#streams) if (stream.isPaused()) stream.resume();
  }
}

function asItIs(bytes: Buffer): readonly Uint8Array[] {
  return [bytes];
}
