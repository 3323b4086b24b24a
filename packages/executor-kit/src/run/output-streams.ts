import net from "node:net";
import type { Readable } from "node:stream";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";

/** More than pipes can hold: anything beyond this comes from a process that the block left running. */
const mostAfterEnd = 4_194_304;
const pausedMs = 10;

/**
 * The streams of a running program: reads them into a sink, and pauses them while it has no room.
 *
 * @example
 * const output = new OutputStreams();
 * output.follow(child.stdout, (data) => sink.write({ type: "stdout", data }));
 * output.follow(child.stderr, (data) => sink.write({ type: "stderr", data }));
 * await once(child, "exit");
 * await output.drained();
 * output.end();
 */
export class OutputStreams {
  readonly #streams: Readable[] = [];
  #arrived = 0;
  #held = 0;
  #isOver = false;

  /** Bytes that have arrived so far. */
  get arrived(): number {
    return this.#arrived;
  }

  /** True while a stream waits for room. */
  get isPaused(): boolean {
    return this.#streams.some((stream) => stream.isPaused() && !stream.readableEnded);
  }

  /** Reads a stream until `end`. @param write - as that of a `Sink`. */
  follow(stream: Readable, write: (bytes: Buffer) => Promise<void> | undefined): void {
    this.add(stream);
    stream.on("data", (bytes: Buffer) => {
      this.#arrived += bytes.length;
      if (!this.#isOver) this.hold(write(bytes));
    });
  }

  /** Adds a stream that the caller reads. */
  add(stream: Readable): void {
    this.#streams.push(stream);
  }

  /** Pauses all streams until there is room. */
  hold(room: Promise<void> | undefined): void {
    if (!room) return;
    this.#held += 1;
    for (const stream of this.#streams) stream.pause();
    void room.then(() => {
      this.#held -= 1;
      if (this.#held === 0) for (const stream of this.#streams) stream.resume();
    });
  }

  /**
   * Waits until everything written before now has arrived, even if a process holds the streams open: until the system
   * has nothing more to read. A sink without room makes it wait.
   */
  async drained(): Promise<void> {
    let left = mostAfterEnd;
    for (let idle = 0; idle < 3 && left > 0 && !this.#isOver;) {
      const before = this.#arrived;
      // After a full turn of the event loop, everything that was readable has been read.
      await turn();
      const paused = this.isPaused;
      if (paused) await sleep(pausedMs);
      idle = paused || this.#arrived > before ? 0 : idle + 1;
      left -= this.#arrived - before;
    }
  }

  /** From now on, reads and drops what a background process keeps writing, without keeping this program alive. */
  end(): void {
    this.#isOver = true;
    for (const stream of this.#streams) {
      stream.resume();
      if (stream instanceof net.Socket) stream.unref();
    }
  }
}
