import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { BlockEvent } from "@fenced/executor-kit";
import type Docker from "dockerode";
import { BlockOutput } from "../channel/block-output.ts";
import { StreamDemultiplexer } from "../channel/stream-demultiplexer.ts";
import { answered } from "../daemon/docker-error.ts";

/** Bytes that may wait for a slow consumer before the stream, and in the end the program, is made to wait. */
const highWaterMark = 262_144;
const pollMs = 100;
/** Silence after which a program that has ended is taken to have said everything. */
const quietMs = 500;

/** The output of one `exec` of the daemon, and its end. */
export class ExecStream {
  readonly #exec: Docker.Exec;
  readonly #stream: Duplex;
  readonly #output = new BlockOutput<number>();
  #arrived = 0;
  #over: boolean = false;

  constructor(exec: Docker.Exec, stream: Duplex, stdin: string | undefined) {
    this.#exec = exec;
    this.#stream = stream;
    const demultiplexer = new StreamDemultiplexer((name, bytes) => this.#output.push(name, bytes));
    stream.on("data", (chunk: Buffer) => {
      if (this.#over) return;
      this.#arrived += chunk.length;
      demultiplexer.push(chunk);
      if (this.#output.waiting > highWaterMark) stream.pause();
    });
    // A program that does not read its input, or a connection that breaks: the end tells how it went.
    stream.on("error", () => {});
    const finish = (): void => void this.#finish();
    stream.once("end", finish);
    stream.once("close", finish);
    if (stdin !== undefined) stream.end(stdin);
    void this.#watch();
  }

  /** What the program writes, then its exit code. */
  async *events(): AsyncGenerator<BlockEvent, number, void> {
    try {
      return yield* this.#output.events(() => {
        if (this.#stream.isPaused() && this.#output.waiting <= highWaterMark / 2) this.#stream.resume();
      });
    } finally {
      this.#over = true;
      // What the program left running may go on writing: it is read and dropped, until the container or the process ends.
      this.#stream.resume();
    }
  }

  /** The program was killed: its end is not waited for if the daemon does not tell it soon. */
  async leave(): Promise<void> {
    await sleep(500);
    this.#output.end(137);
  }

  fail(error: unknown): void {
    this.#over = true;
    this.#output.fail(error);
    this.#stream.destroy();
  }

  /** A child that holds the output open keeps the stream from ending, so the daemon is asked as well. */
  async #watch(): Promise<void> {
    for (let pause = pollMs; !this.#over; pause = Math.min(pause * 1.2, 1000)) {
      await sleep(pause);
      if (await this.#hasEnded()) await this.#settle();
    }
  }

  /**
   * Waits until nothing has come for a while, unless nothing can come because nobody reads: the daemon may tell of the
   * end before it has passed on all of the output. Only blocks that leave a child with their output open wait here.
   */
  async #settle(): Promise<void> {
    for (let seen = -1; !this.#over && (seen !== this.#arrived || this.#stream.isPaused());) {
      seen = this.#arrived;
      await sleep(quietMs);
    }
    await this.#finish();
  }

  async #hasEnded(): Promise<boolean> {
    try {
      return !(await answered(this.#exec.inspect(), "exec inspect", 10_000)).Running;
    } catch {
      return false;
    }
  }

  async #finish(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    // Right after its end the daemon may still take a program for running.
    for (let attempt = 0; attempt < 100; attempt += 1) {
      try {
        const { Running: running, ExitCode: code } = await answered(this.#exec.inspect(), "exec inspect", 10_000);
        if (!running && code !== null) {
          this.#output.end(code);
          return;
        }
      } catch (error) {
        this.#output.fail(error);
        return;
      }
      await sleep(20);
    }
    this.#output.fail(new Error("the daemon does not tell how the block ended"));
  }
}
