import { randomUUID } from "node:crypto";
import { BackendUnavailableError } from "@fenced/core";
import { timeIsUp } from "../run/block-run.ts";
import { OutputQueue, type OutputPiece, type OutputWatcher, type SharedMemory } from "../run/output-queue.ts";
import { diskFull } from "../workspace/pinned-directory.ts";
import type { ProgramEnd } from "./supervised-program.ts";
import { frameType, type OutputName } from "./wire.ts";

/** Bytes of a program's output that may be in transit before the program has to wait. */
export const windowBytes = 524_288;
/** The supervisor exceeds the window only when a program ends, by whatever is still in the program's pipes. */
const mostWaiting = windowBytes + 5_242_880;
/** Time limit for a killed program to end in milliseconds. */
const killMs = 10_000;

/** The supervisor's report for a block whose interpreter has ended. */
const gone = "gone";

/** The interpreter ended before the block began, so the block can run in another one. */
export class InterpreterGone extends Error {}

/** Sends a frame to the supervisor. */
export type Send = (type: number, number: number, payload?: Uint8Array) => void;

/** Receives a program's output. */
interface Taker {
  readonly queue: Pick<OutputQueue<ProgramEnd>, "waiting" | "end" | "fail">;
  push(type: OutputName, bytes: Uint8Array, memory?: SharedMemory): void;
  /** When the supervisor reported its end; a slow reader sees that later. */
  endedAt?: number;
}

/** The programs that a supervisor is currently running. */
export class RunningPrograms {
  readonly #send: Send;
  readonly #lose: (error: Error) => void;
  readonly #takers = new Map<number, Taker>();
  #last = 0;

  constructor(send: Send, lose: (error: Error) => void) {
    this.#send = send;
    this.#lose = lose;
  }

  /** Returns a new number for a program or an interpreter. */
  newNumber(): number {
    return (this.#last = (this.#last % 0xffff_fffe) + 1);
  }

  /** Returns a variable by which the supervisor finds processes that have escaped from the process tree. */
  newMark(): string {
    return `FENCED_BLOCK=${randomUUID()}`;
  }

  /**
   * Starts a program with the frames that `start` sends, and yields its output until it has ended.
   *
   * @param signal - kills everything that the program started.
   * @param left - called once nobody is waiting for the program any more.
   */
  run(
    signal: AbortSignal,
    start: (number: number) => void,
    left: (number: number) => void,
  ): AsyncGenerator<OutputPiece, ProgramEnd, void> {
    const queue = new OutputQueue<ProgramEnd>();
    const push: Taker["push"] = (type, bytes, memory) => {
      if (type === "rich") throw new Error("the supervisor's stream is not valid");
      queue.push(type, bytes, memory);
    };
    return queue.events(this.#begin({ queue, push }, signal, start, left));
  }

  /** Like `run`, for a program that can also send rich output. */
  runRich(
    signal: AbortSignal,
    start: (number: number) => void,
  ): AsyncGenerator<OutputPiece<OutputName>, ProgramEnd, void> {
    const queue = new OutputQueue<ProgramEnd, OutputName>();
    const push: Taker["push"] = (type, bytes, memory) => queue.push(type, bytes, memory);
    return queue.events(this.#begin({ queue, push }, signal, start));
  }

  /** Handles a piece of output. */
  output(type: OutputName, number: number, bytes: Buffer, memory?: SharedMemory): void {
    const taker = this.#takers.get(number);
    taker?.push(type, bytes, memory);
    if (taker && taker.queue.waiting > mostWaiting) throw new Error("the supervisor sent more than it may");
  }

  /** Handles the report that a program has ended. */
  ended(number: number, payload: Buffer): void {
    const taker = this.#takers.get(number);
    if (!taker) return;
    const problem = payload.subarray(6).toString();
    taker.endedAt = performance.now();
    if (problem === gone) taker.queue.fail(new InterpreterGone("The interpreter has ended"));
    else if (problem !== "") taker.queue.fail(notStarted(problem));
    else taker.queue.end({ ...readEnd(payload), endedAt: taker.endedAt });
  }

  /** Fails all of them. */
  fail(error: Error): void {
    for (const { queue } of this.#takers.values()) queue.fail(error);
  }

  #begin(
    taker: Taker,
    signal: AbortSignal,
    start: (number: number) => void,
    onLeft?: (number: number) => void,
  ): OutputWatcher {
    const number = this.newNumber();
    this.#takers.set(number, taker);
    let killed: NodeJS.Timeout | undefined;
    const kill = (): void => {
      // The program finished in time and only its reader is slow, so what it left running stays alive.
      if (taker.endedAt !== undefined && signal.reason === timeIsUp) return;
      this.#send(frameType.kill, number);
      killed ??= setTimeout(() => this.#lose(notEnded()), killMs);
    };
    start(number);
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    const left = (): void => {
      clearTimeout(killed);
      signal.removeEventListener("abort", kill);
      this.#takers.delete(number);
      onLeft?.(number);
    };
    return { taken: this.#creditor(number), left };
  }

  #creditor(number: number): (bytes: number) => void {
    let taken = 0;
    return (bytes) => {
      taken += bytes;
      if (taken < windowBytes / 4) return;
      const credit = Buffer.alloc(4);
      credit.writeUInt32BE(taken);
      taken = 0;
      this.#send(frameType.credit, number, credit);
    };
  }
}

/** A negative code means that the code is unknown, because something killed the program's shepherd. */
function readEnd(payload: Buffer): ProgramEnd {
  const code = payload.readInt32BE(0);
  const exitCode = code < 0 ? 137 : code;
  return { exitCode, outOfMemory: exitCode === 137 && payload.readUInt8(4) === 1 };
}

function notStarted(problem: string): BackendUnavailableError {
  if (/: (?:No space left on device|Disk quota exceeded)$/.test(problem)) return diskFull("the block");
  return new BackendUnavailableError(problem, {
    remedy:
      "Call restart(), which ends all processes there, or raise the limits on processes (`pidsLimit`) and memory.",
  });
}

function notEnded(): BackendUnavailableError {
  return new BackendUnavailableError(`A block did not end within ${killMs / 1000} s after it was killed`, {
    remedy: "Call again to start a new supervisor.",
  });
}
