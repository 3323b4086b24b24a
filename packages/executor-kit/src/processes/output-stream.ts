import { ByteQueue } from "@fenced/core";

/** Bytes of each stream that may wait for a slow consumer before the program has to wait. */
const highWaterMark = 262_144;

/** One output of a program. */
export class OutputStream {
  readonly readable: ReadableStream<Uint8Array>;
  /** What waits for its reader: a program that writes single bytes takes no more memory than others. */
  readonly #bytes = new ByteQueue();
  readonly #wake: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** The reader waits for something. */
  #wanted = false;
  #ended = false;

  /** @param wake - called when there may be room again. */
  constructor(wake: () => void) {
    this.#wake = wake;
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          this.#wanted = true;
          this.#pass();
        },
        cancel: () => {
          this.#controller = undefined;
          this.#bytes.take();
          wake();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Also true if the consumer has left. */
  get hasRoom(): boolean {
    return !this.#controller || this.#bytes.length < highWaterMark;
  }

  /** Copies the data, whose memory may be reused. Drops it if the consumer has left. */
  push(data: Uint8Array | string): void {
    if (!this.#controller) return;
    this.#bytes.add(typeof data === "string" ? Buffer.from(data) : data);
    this.#pass();
  }

  close(): void {
    this.#ended = true;
    this.#pass();
  }

  /** Gives the reader what it waits for. */
  #pass(): void {
    if (this.#controller && this.#wanted && this.#bytes.length > 0) {
      this.#wanted = false;
      this.#controller.enqueue(this.#bytes.take());
      this.#wake();
    }
    if (!this.#ended || this.#bytes.length > 0) return;
    this.#controller?.close();
    this.#controller = undefined;
  }
}
