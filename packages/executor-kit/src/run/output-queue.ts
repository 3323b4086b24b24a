import net from "node:net";
import type { Readable } from "node:stream";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import type { StreamName } from "../output/output-collector.ts";

/** Bytes that may wait for a slow consumer before the streams, and eventually the program, have to wait. */
const highWaterMark = 262_144;
/** More than pipes can hold: anything beyond this comes from a process that the block left running. */
const mostAfterEnd = 4_194_304;
const pausedMs = 10;
/** Smaller pieces are copied, because they would hold shared memory many times their size while they wait. */
const smallPiece = 65_536;

/** Memory that is reused once nobody needs its content. */
export interface SharedMemory {
  /** Keeps a piece of it beyond the call that handed it out. */
  hold(): void;
  /** Releases a piece that was held. */
  release(): void;
}

/** A piece of output. */
export interface OutputPiece<Name extends string = StreamName> {
  readonly type: Name;
  readonly data: Uint8Array;
}

interface Piece<Name extends string> {
  readonly event: OutputPiece<Name>;
  readonly memory: SharedMemory | undefined;
}

/** Callbacks for the consumption of output. */
export interface OutputWatcher {
  /** Called with the number of bytes consumed. */
  readonly taken?: (bytes: number) => void;
  /** Called when nothing more is read, because the consumer has everything or has left. */
  readonly left?: () => void;
}

/**
 * A block's output that has not been consumed yet: turns streams that push into the generator that `run` returns.
 * Pauses the streams while too much is waiting.
 *
 * @example
 * const output = new OutputQueue<BlockOutcome>();
 * output.follow("stdout", child.stdout);
 * output.follow("stderr", child.stderr);
 * child.on("error", (error) => output.fail(error));
 * child.on("close", (code) => output.end({ exitCode: code ?? 137 }));
 * return yield* output.events();
 */
export class OutputQueue<Outcome, Name extends string = StreamName> {
  readonly #streams: Readable[] = [];
  #queue: Piece<Name>[] = [];
  #end: { readonly value: Outcome } | { readonly error: unknown } | undefined;
  #waiting = 0;
  #arrived = 0;
  #wake: () => void = () => {};

  /**
   * Reads everything from a stream until the block ends. Later output is read and dropped, so that a process that is
   * still writing does not block.
   *
   * @param transform - turns what arrives into pieces of output. Default: leaves it unchanged.
   */
  follow(type: Name, stream: Readable, transform: (bytes: Buffer) => readonly Uint8Array[] = asItIs): void {
    this.#streams.push(stream);
    stream.on("data", (bytes: Buffer) => {
      for (const piece of transform(bytes)) this.push(type, piece);
    });
  }

  /** Bytes that have not been consumed yet. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Adds a piece of output.
   *
   * @param shared - the memory that contains `data`, if it is reused; held until the piece is consumed. Default: not
   * reused.
   */
  push(type: Name, data: Uint8Array, shared?: SharedMemory): void {
    if (data.length === 0 || this.#over) return;
    const memory = data.length < smallPiece ? undefined : shared;
    memory?.hold();
    this.#queue.push({ event: { type, data: shared && !memory ? Buffer.from(data) : data }, memory });
    this.#waiting += data.length;
    this.#arrived += data.length;
    if (this.#waiting > highWaterMark) for (const stream of this.#streams) stream.pause();
    this.#wake();
  }

  /** Call this when the block has ended and all of its output has been added. Only the first end or failure counts. */
  end(value: Outcome): void {
    this.#end ??= { value };
    this.#wake();
  }

  /** Call this when it will never be known how the block ended. */
  fail(error: unknown): void {
    this.#end ??= { error };
    this.#wake();
  }

  /**
   * Waits until everything written before now has arrived, even if a process holds the streams open: until the system
   * has nothing more to read. A consumer that does not read makes it wait.
   */
  async drained(): Promise<void> {
    let left = mostAfterEnd;
    for (let idle = 0; idle < 3 && left > 0 && !this.#over;) {
      const before = this.#arrived;
      // After a full turn of the event loop, everything that was readable has been read.
      await turn();
      const paused = this.#streams.some((stream) => stream.isPaused() && !stream.readableEnded);
      if (paused) await sleep(pausedMs);
      idle = paused || this.#arrived > before ? 0 : idle + 1;
      left -= this.#arrived - before;
    }
  }

  /**
   * Yields everything that the block outputs, and returns how it ended.
   *
   * @throws the error passed to `fail`, once the output before it is consumed.
   */
  async *events({ taken, left }: OutputWatcher = {}): AsyncGenerator<OutputPiece<Name>, Outcome, void> {
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
        if (this.#end && "error" in this.#end) throw this.#end.error;
        if (this.#end) return this.#end.value;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      left?.();
      // Read and drop what a background process keeps writing, without keeping this program alive.
      for (const stream of this.#streams) {
        stream.resume();
        if (stream instanceof net.Socket) stream.unref();
      }
    }
  }

  get #over(): boolean {
    return this.#end !== undefined;
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
