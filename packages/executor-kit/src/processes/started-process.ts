import { ByteQueue, type ProcessExit, type RunningProcess, type WritableProcess } from "@fenced/core";
import { followSignals } from "@fenced/core/abort";
import { timeIsUp, type BlockEvent, type BlockOutcome } from "../run/block-run.ts";
import { Room } from "../run/room.ts";
import type { Sink } from "../run/sink.ts";
import { notRead, ProgramInput } from "./program-input.ts";

/** Bytes of each stream that may wait for a slow consumer before the program has to wait. */
const highWaterMark = 262_144;

/** Runs a program to its end. */
type Run = (sink: Sink) => Promise<BlockOutcome>;

/** A program that was started, with its output as two streams. */
export class StartedProcess implements RunningProcess {
  /** Resolves when the program has ended by itself, or when everything that it started has been killed. */
  readonly ended: Promise<void>;
  readonly #stdout = new OutputStream(() => this.#wake());
  readonly #stderr = new OutputStream(() => this.#wake());
  readonly stdout: ReadableStream<Uint8Array> = this.#stdout.readable;
  readonly stderr: ReadableStream<Uint8Array> = this.#stderr.readable;
  readonly #input: ProgramInput | undefined;
  readonly #ending = new AbortController();
  readonly #exit: Promise<ProcessExit>;
  /** Opened when both streams have room. */
  readonly #room = new Room();

  /**
   * @param signal - kills the program; `wait()` then rejects with its reason.
   * @param input - what is written to it while it runs; closed when it ends. Default: nothing.
   */
  constructor(run: Run, signal: AbortSignal, input?: ProgramInput) {
    this.#input = input;
    const unfollow = followSignals(this.#ending, [signal]);
    const end = (): void => {
      // Done before the session reports that the program reads no more, so that the caller's reason counts.
      input?.close(signal.aborted ? signal.reason : notRead());
      this.#wake();
    };
    this.#ending.signal.addEventListener("abort", end, { once: true });
    this.#exit = this.#follow(run, signal);
    this.ended = this.#exit.then(unfollow, unfollow);
  }

  wait(): Promise<ProcessExit> {
    return this.#exit;
  }

  async kill(): Promise<void> {
    // With this reason, the outcome is still reported.
    this.#ending.abort(timeIsUp);
    await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #follow(run: Run, signal: AbortSignal): Promise<ProcessExit> {
    try {
      const { exitCode } = await run({ signal: this.#ending.signal, write: (event) => this.#write(event) });
      signal.throwIfAborted();
      return { exitCode };
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      this.#input?.close(notRead());
      this.#stdout.close();
      this.#stderr.close();
    }
  }

  #write(event: BlockEvent): Promise<void> | undefined {
    if (event.type !== "stdout" && event.type !== "stderr") return undefined;
    const stream = event.type === "stdout" ? this.#stdout : this.#stderr;
    // A program that is being killed ends without its consumer.
    if (stream.hasRoom || !this.#ending.signal.aborted) stream.push(event.data);
    return this.#hasRoom ? undefined : this.#room.opened;
  }

  #wake(): void {
    if (this.#hasRoom) this.#room.open();
  }

  get #hasRoom(): boolean {
    return this.#ending.signal.aborted || (this.#stdout.hasRoom && this.#stderr.hasRoom);
  }
}

/** A program whose input can be written while it runs. */
export class WritableStartedProcess extends StartedProcess implements WritableProcess {
  readonly stdin: WritableStream<Uint8Array>;

  /** @param run - starts the program, which reads these pieces. */
  constructor(run: (sink: Sink, stdin: AsyncIterable<Uint8Array>) => ReturnType<Run>, signal: AbortSignal) {
    const input = new ProgramInput();
    super((sink) => run(sink, input.pieces), signal, input);
    this.stdin = input.writable;
  }
}

/** One output of a program. */
class OutputStream {
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
