import { randomUUID } from "node:crypto";
import { BackendUnavailableError } from "@fenced/core";
import type { OutputPiece, Sink } from "../../run/sink.ts";
import { diskFull } from "../../workspace/workspace-errors.ts";
import { encodeFrame, frameType, type OutputName } from "../wire/wire.ts";
import { programUsage } from "./program-usage.ts";
import type { ProgramEnd } from "./supervised-program.ts";

/** Bytes of a program's output that may be in transit before the program has to wait. */
export const windowBytes = 524_288;
/** The supervisor exceeds the window only when a program ends, by whatever is still in the program's pipes. */
const mostWaiting = windowBytes + 5_242_880;
/** Time limit for a killed program to end in milliseconds. */
const killMs = 10_000;

/** The exit code of a program that was killed. */
const killedCode = 137;

/** Where the reason begins for which a program did not start. */
const problemAt = 22;

/** The supervisor's report for a block whose interpreter has ended. */
const gone = "gone";

/** The interpreter ended before the block began, so the block can run in another one. */
export class InterpreterGone extends Error {}

/** Sends a frame to the supervisor. */
export type Send = (type: number, number: number, payload?: Uint8Array) => void;

/** Returns the frames that `start` sends, for a submitted run. */
export function framesOf(start: (send: Send) => void): Buffer {
  const frames: Buffer[] = [];
  start((type, number, payload) => frames.push(encodeFrame(type, number, payload)));
  return Buffer.concat(frames);
}

interface ProgramSettings {
  readonly lose: (error: Error) => void;
  /** The supervisor cannot be reached now, but may be later. */
  readonly isCut: () => boolean;
  /** The highest number that is in use. */
  readonly last: number;
}

/** The programs that a supervisor is currently running. */
export class RunningPrograms {
  readonly #send: Send;
  readonly #lose: (error: Error) => void;
  readonly #isCut: () => boolean;
  readonly #running = new Map<number, RunningProgram>();
  #last: number;

  constructor(send: Send, { lose, isCut, last }: ProgramSettings) {
    this.#send = send;
    this.#lose = lose;
    this.#isCut = isCut;
    this.#last = last;
  }

  /** Returns a new number for a program or an interpreter. */
  newNumber(): number {
    return (this.#last = (this.#last % 0xffff_fffe) + 1);
  }

  /** Returns a variable by which the supervisor finds processes that have escaped from the process tree. */
  newMark(): string {
    return `FENCED_BLOCK=${randomUUID()}`;
  }

  /** Starts a program with the frames that `start` sends, and writes its output to the sink until it has ended. */
  run(sink: Sink<OutputPiece>, start: (number: number) => void, watcher?: ProgramWatcher): Promise<ProgramEnd> {
    return this.#run(plain(sink), { start, ...watcher });
  }

  /** The same for a program that runs already. */
  follow(number: number, sink: Sink<OutputPiece>, watcher: ProgramWatcher): Promise<ProgramEnd> {
    const start = (): void => this.#send(frameType.hear, number, creditOf(windowBytes));
    return this.#run(plain(sink), { start, number, ...watcher });
  }

  /** Like `run`, for a program that can also send rich output. */
  runRich(sink: Sink<OutputPiece<OutputName>>, start: (number: number) => void): Promise<ProgramEnd> {
    return this.#run({ signal: sink.signal, write: (type, data) => sink.write({ type, data }) }, { start });
  }

  /** Handles the report that a program runs. */
  started(number: number, pid: number): void {
    this.#running.get(number)?.started?.(pid);
  }

  /** Handles a piece of output. */
  output(type: OutputName, number: number, bytes: Buffer): void {
    this.#running.get(number)?.output(type, bytes);
  }

  /** Handles the report that a program has ended. */
  ended(number: number, payload: Buffer): void {
    const program = this.#running.get(number);
    const problem = payload.subarray(problemAt).toString();
    if (problem === gone) program?.fail(new InterpreterGone("The interpreter has ended"));
    else if (problem !== "") program?.fail(notStarted(problem));
    else program?.end({ ...readEnd(payload), endedAt: performance.now() });
  }

  /** Fails all of them. */
  fail(error: Error): void {
    for (const program of this.#running.values()) program.fail(error);
  }

  async #run(
    { signal, write }: Output,
    { start, number = this.newNumber(), started, ended }: RunOptions,
  ): Promise<ProgramEnd> {
    const program = new RunningProgram(write, (credit) => this.#send(frameType.credit, number, credit));
    program.started = started && ((pid) => started(number, pid));
    this.#running.set(number, program);
    let killed: NodeJS.Timeout | undefined;
    const kill = (): void => {
      this.#send(frameType.kill, number);
      killed ??= setTimeout(() => {
        // It ends when its supervisor learns of it.
        if (this.#isCut()) program.end({ exitCode: killedCode, outOfMemory: false });
        else this.#lose(notEnded());
      }, killMs);
    };
    start(number);
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    try {
      return await program.whenEnded;
    } finally {
      clearTimeout(killed);
      signal.removeEventListener("abort", kill);
      this.#running.delete(number);
      ended?.(number);
    }
  }
}

/** Learns what becomes of a program. */
interface ProgramWatcher {
  /** Called when it runs. */
  readonly started?: ((number: number, pid: number) => void) | undefined;
  /** Called once nobody is waiting for the program any more. */
  readonly ended?: ((number: number) => void) | undefined;
}

interface RunOptions extends ProgramWatcher {
  readonly start: (number: number) => void;
  readonly number?: number;
}

function plain(sink: Sink<OutputPiece>): Output {
  const write: Write = (type, data) => {
    if (type === "rich") throw new Error("the supervisor's stream is not valid");
    return sink.write({ type, data });
  };
  return { signal: sink.signal, write };
}

function creditOf(bytes: number): Buffer {
  const credit = Buffer.alloc(4);
  credit.writeUInt32BE(bytes);
  return credit;
}

type Write = (type: OutputName, data: Uint8Array) => Promise<void> | undefined;

/** Where a program's output goes. */
interface Output {
  readonly signal: AbortSignal;
  readonly write: Write;
}

/** One of them: passes its output on, and gives the supervisor credit for what was taken. */
class RunningProgram {
  readonly whenEnded: Promise<ProgramEnd>;
  readonly #write: Write;
  readonly #sendCredit: (credit: Buffer) => void;
  /** Bytes that were written while there was no room. */
  #waiting = 0;
  #isWaiting = false;
  /** Bytes that were taken since the last credit. */
  #taken = 0;
  end: (end: ProgramEnd) => void = () => {};
  fail: (error: Error) => void = () => {};
  started: ((pid: number) => void) | undefined;

  constructor(write: Write, sendCredit: (credit: Buffer) => void) {
    this.#write = write;
    this.#sendCredit = sendCredit;
    this.whenEnded = new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
    });
  }

  output(type: OutputName, bytes: Buffer): void {
    const room = this.#write(type, bytes);
    if (!room) {
      this.#take(bytes.length);
      return;
    }
    this.#waiting += bytes.length;
    if (this.#waiting > mostWaiting) throw new Error("the supervisor sent more than it may");
    if (this.#isWaiting) return;
    // Once for all pieces until then, of which there can be half a million.
    this.#isWaiting = true;
    void room.then(() => {
      const taken = this.#waiting;
      [this.#waiting, this.#isWaiting] = [0, false];
      this.#take(taken);
    });
  }

  #take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < windowBytes / 4) return;
    const credit = creditOf(this.#taken);
    this.#taken = 0;
    this.#sendCredit(credit);
  }
}

/** A negative code means that the code is unknown, because something killed the program's shepherd. */
function readEnd(payload: Buffer): ProgramEnd {
  const code = payload.readInt32BE(0);
  const exitCode = code < 0 ? killedCode : code;
  const usage = programUsage([6, 14].map((at) => Number(payload.readBigInt64BE(at))));
  return { exitCode, outOfMemory: exitCode === killedCode && payload.readUInt8(4) === 1, usage };
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
