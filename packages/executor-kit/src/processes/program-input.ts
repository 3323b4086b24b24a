import type { Writable } from "node:stream";
import { InvalidInputError } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
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
  readonly #isTerminal: boolean;
  #offer: Offer | undefined;
  /** The session waits for a piece or the end. */
  #asking: ((next: IteratorResult<Uint8Array, undefined>) => void) | undefined;
  #ended = false;
  /** Why nothing can be written any more. */
  #closed: { readonly reason: unknown } | undefined;
  /** The last write so far: those of several streams take turns. */
  #last: Promise<void> = Promise.resolve();

  /** @param isTerminal - what is written is typed on a terminal, so a stream that closes or is aborted ends only itself. */
  constructor(isTerminal = false) {
    this.#isTerminal = isTerminal;
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
    let aborted: AbortSignal | undefined;
    return new WritableStream<Uint8Array>(
      {
        start: (controller) => {
          const signal = abortOf(controller);
          if (this.#isTerminal) aborted = signal;
          else signal?.addEventListener("abort", () => this.#drop(signal.reason), { once: true });
        },
        write: (chunk) => untilAborted(this.#write(chunk, aborted), aborted),
        close: () => {
          if (!this.#isTerminal) this.#end();
        },
      },
      { highWaterMark: pieceBytes, size: (chunk) => (chunk instanceof Uint8Array ? chunk.length : 0) },
    );
  }

  /** Call this when the program reads no more: pending and later writes reject with the reason. */
  close(reason: unknown): void {
    this.#closed ??= { reason };
    this.#drop(this.#closed.reason);
  }

  #write(chunk: Uint8Array, aborted: AbortSignal | undefined): Promise<void> {
    const written = this.#last.then(() => this.#writeNow(chunk, aborted));
    this.#last = written.catch(() => {});
    return written;
  }

  async #writeNow(chunk: Uint8Array, aborted: AbortSignal | undefined): Promise<void> {
    if (!(chunk instanceof Uint8Array)) {
      if (!this.#isTerminal) this.#end();
      throw notBytes();
    }
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      if (this.#closed) throw this.#closed.reason;
      // By another stream: nobody asks for more.
      if (this.#ended) throw notRead();
      aborted?.throwIfAborted();
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

/** The signal by which an abort gets past a write that waits for the program, for which the stream itself would wait. */
function abortOf(controller: WritableStreamDefaultController): AbortSignal | undefined {
  // Missing in Node's types.
  const signal: unknown = Reflect.get(controller, "signal");
  return signal instanceof AbortSignal ? signal : undefined;
}

/** Why a write fails once a program has ended, or gets or reads no more. */
export function notRead(): InvalidInputError {
  return new InvalidInputError(
    "Cannot write to the program's `stdin`: the program has ended, or its input was closed",
    {
      remedy: "`wait()` reports how it ended.",
    },
  );
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
