import type { Writable } from "node:stream";
import { InvalidInputError } from "@fenced/core";
import type { ProgramRun } from "../run/block-run.ts";

/** Maximum size of a piece that a session gets, in bytes. */
const pieceBytes = 65_536;

/** A piece of input that is not yet on its way to the program. */
interface Offer {
  readonly piece: Uint8Array;
  /** The session has it, and has not asked for the next one. */
  handedOver: boolean;
  readonly taken: () => void;
  readonly refused: (reason: unknown) => void;
}

/**
 * The input of a running program: a stream for the caller, and the pieces that the session pulls from it. A write
 * resolves when the session asks for more, so at most one piece is buffered.
 */
export class ProgramInput {
  readonly writable: WritableStream<Uint8Array>;
  /** For the session, which iterates over it once. */
  readonly pieces: AsyncIterable<Uint8Array>;
  #offer: Offer | undefined;
  /** The session waits for a piece or the end. */
  #asking: ((next: IteratorResult<Uint8Array, undefined>) => void) | undefined;
  #ended = false;
  /** Why nothing can be written any more. */
  #closed: { readonly reason: unknown } | undefined;
  /** The last write so far: those of several streams take turns. */
  #last: Promise<void> = Promise.resolve();

  constructor() {
    const iterator = {
      next: () => this.#next(),
      return: () => {
        this.close(notRead());
        return Promise.resolve({ done: true as const, value: undefined });
      },
    };
    this.pieces = { [Symbol.asyncIterator]: () => iterator };
    this.writable = this.another();
  }

  /** Returns one more stream for the same input. */
  another(): WritableStream<Uint8Array> {
    return new WritableStream<Uint8Array>(
      {
        start: (controller) => this.#followAbort(controller),
        write: (chunk) => this.#write(chunk),
        close: () => this.#end(),
      },
      { highWaterMark: pieceBytes, size: (chunk) => (chunk instanceof Uint8Array ? chunk.length : 0) },
    );
  }

  /** Call this when the program reads no more: pending and later writes reject with the reason. */
  close(reason: unknown): void {
    this.#closed ??= { reason };
    this.#drop(this.#closed.reason);
  }

  /** Lets an abort get past a write that waits for the program, for which the stream itself would wait. */
  #followAbort(controller: WritableStreamDefaultController): void {
    // Missing in Node's types.
    const signal: unknown = Reflect.get(controller, "signal");
    if (!(signal instanceof AbortSignal)) return;
    signal.addEventListener("abort", () => this.#drop(signal.reason), { once: true });
  }

  #write(chunk: Uint8Array): Promise<void> {
    const written = this.#last.then(() => this.#writeNow(chunk));
    this.#last = written.catch(() => {});
    return written;
  }

  async #writeNow(chunk: Uint8Array): Promise<void> {
    if (!(chunk instanceof Uint8Array)) {
      this.#end();
      throw notBytes();
    }
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      if (this.#closed) throw this.#closed.reason;
      // Copy it, because the writer may reuse its memory as soon as the write has resolved.
      await this.#hand(chunk.slice(at, at + pieceBytes));
    }
  }

  #hand(piece: Uint8Array): Promise<void> {
    return new Promise((taken, refused) => {
      this.#offer = { piece, handedOver: false, taken, refused };
      this.#answer();
    });
  }

  #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#offer?.handedOver === true) {
      this.#offer.taken();
      this.#offer = undefined;
    }
    return new Promise((resolve) => {
      this.#asking = resolve;
      this.#answer();
    });
  }

  #answer(): void {
    if (!this.#asking) return;
    if (this.#offer && !this.#offer.handedOver) {
      this.#offer.handedOver = true;
      this.#asking({ done: false, value: this.#offer.piece });
    } else if (this.#ended) this.#asking({ done: true, value: undefined });
    else return;
    this.#asking = undefined;
  }

  #end(): void {
    this.#ended = true;
    this.#answer();
  }

  #drop(reason: unknown): void {
    this.#offer?.refused(reason);
    this.#offer = undefined;
    this.#end();
  }
}

/** Why a write fails once a program has ended, or reads no more. */
export function notRead(): InvalidInputError {
  return new InvalidInputError("Cannot write to the program's `stdin`: the program has ended or closed its input", {
    remedy: "`wait()` reports how it ended.",
  });
}

function notBytes(): InvalidInputError {
  return new InvalidInputError("Only a Uint8Array can be written to a program's `stdin`", {
    remedy: "Encode text first: `new TextEncoder().encode(text)`, or pipe it through a TextEncoderStream.",
  });
}

/** True for input that arrives while the program runs. */
export function isLiveInput(stdin: ProgramRun["stdin"]): stdin is AsyncIterable<Uint8Array> {
  return typeof stdin === "object" && Symbol.asyncIterator in stdin;
}

/**
 * Writes a program's input to a stream as it comes, no faster than the stream accepts it, and then ends the stream.
 * Stops reading the input if the stream closes, for example because the program closes its end.
 */
export async function feedProgram(pieces: AsyncIterable<Uint8Array>, stream: Writable): Promise<void> {
  const iterator: AsyncIterator<Uint8Array, unknown> = pieces[Symbol.asyncIterator]();
  const closed = new Promise<void>((resolve) => {
    stream.once("close", resolve);
  });
  void closed.then(() => iterator.return?.());
  // A program need not read its input.
  stream.on("error", () => {});
  for (;;) {
    const next = await iterator.next();
    if (next.done === true || !stream.writable) break;
    if (stream.write(next.value)) continue;
    const drained = new Promise<void>((resolve) => {
      stream.once("drain", resolve);
    });
    await Promise.race([drained, closed]);
  }
  stream.end();
}
