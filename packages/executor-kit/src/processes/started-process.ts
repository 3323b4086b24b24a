import {
  type ConnectedProcess,
  InvalidInputError,
  type ProcessExit,
  type ProcessSignal,
  processSignals,
  type RunningProcess,
  type TerminalSize,
} from "@fenced/core";
import { afterMs, followSignals } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import { timeIsUp, type BlockEvent, type BlockOutcome, type ProgramControls } from "../run/block-run.ts";
import { Room } from "../run/room.ts";
import type { Sink } from "../run/sink.ts";
import { OutputStream } from "./output-stream.ts";
import { terminalSize } from "./process-options.ts";
import { notRead, ProgramInput } from "./program-input.ts";

/** What a program is started with. */
interface StartedProcessOptions {
  /** Kills the program; `wait()` then rejects with its reason. */
  readonly signal: AbortSignal;
  /** It can be written to while it runs. Default: it gets nothing more. */
  readonly takesInput?: boolean;
  /** Kills the program after so many milliseconds. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** It runs on a terminal. Default: false. */
  readonly hasTerminal?: boolean;
  /** Nobody here has started it, so there is no owner. Default: false. */
  readonly isLeft?: boolean;
}

/** What a program gets while it runs. */
interface ProgramLine {
  readonly stdin: AsyncIterable<Uint8Array> | undefined;
  /** To be called once it runs. */
  readonly started: (controls: ProgramControls) => void;
}

/** Runs a program to its end. */
type Run = (sink: Sink, line: ProgramLine) => Promise<BlockOutcome>;

/** A program that was started, with its output for any number of handles. */
export class StartedProcess {
  /** Resolves when the program runs, or is known not to. */
  readonly begun: Promise<void>;
  /** Resolves when the program has ended by itself, or when everything that it started has been killed. */
  readonly ended: Promise<void>;
  readonly exit: Promise<ProcessExit>;
  readonly hasTerminal: boolean;
  readonly #input: ProgramInput | undefined;
  /** See `takeOwner`. What it has not read must not stay once the program has ended. */
  #owner: ConnectedProcess | undefined;
  readonly #handles = new Set<ProcessHandle>();
  readonly #ending = new AbortController();
  #begin: () => void = () => {};
  #controls: ProgramControls = {};
  #isOver = false;
  #isLate = false;
  /** Opened when all streams have room. */
  readonly #room = new Room();

  constructor(run: Run, { signal, takesInput, timeoutMs, hasTerminal = false, isLeft = false }: StartedProcessOptions) {
    this.hasTerminal = hasTerminal;
    this.#input = takesInput === true ? new ProgramInput(hasTerminal) : undefined;
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
    const unfollow = followSignals(this.#ending, [signal]);
    const end = (): void => {
      // Done before the session reports that the program reads no more, so that the caller's reason counts.
      this.#input?.close(signal.aborted ? signal.reason : notRead());
      this.wake();
    };
    this.#ending.signal.addEventListener("abort", end, { once: true });
    const cancelLimit = afterMs(timeoutMs ?? Infinity, () => {
      this.#isLate = true;
      this.#ending.abort(timeIsUp);
    });
    // Before the first output.
    if (!isLeft) this.#owner = this.#handle(true);
    this.exit = this.#follow(run, signal);
    const over = (): void => {
      cancelLimit();
      unfollow();
      this.#begin();
    };
    this.ended = this.exit.then(over, over);
  }

  get pid(): number | undefined {
    return this.#controls.pid;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns the handle that has all output, once; disposing of it kills the program. Otherwise as `open`. */
  takeOwner(): ConnectedProcess {
    const owner = this.#owner ?? this.open();
    this.#owner = undefined;
    return owner;
  }

  /** Returns one more handle, which has the output from now on; disposing of it lets go of the program. */
  open(): ConnectedProcess {
    return this.#handle(false);
  }

  /** A handle reads no more. */
  leave(handle: ProcessHandle): void {
    this.#handles.delete(handle);
    this.wake();
  }

  /** @throws InvalidInputError if the signal is unknown, or cannot be sent. */
  async kill(signal: ProcessSignal = "SIGKILL"): Promise<void> {
    if (!processSignals.includes(signal)) throw noSignal(signal);
    if (signal === "SIGKILL") {
      // With this reason, the outcome is still reported.
      this.#ending.abort(timeIsUp);
      await this.ended;
    } else if (!this.#isOver) {
      if (!this.#controls.signal) throw cannotSend();
      this.#controls.signal(signal);
    }
  }

  /** Call this when a stream may have room again. */
  wake(): void {
    if (this.#hasRoom) this.#room.open();
  }

  #handle(isOwner: boolean): ConnectedProcess {
    const handle = new ProcessHandle(this, isOwner);
    if (this.#isOver) handle.close();
    else this.#handles.add(handle);
    const stdin = isOwner ? this.#input?.writable : this.#input?.another();
    const resize = async (size: TerminalSize): Promise<void> => this.#resize(size);
    return Object.assign(handle, stdin && { stdin }, this.hasTerminal && { resize });
  }

  #resize(size: TerminalSize): void {
    const checked = checkOptions(terminalSize, size, "resize");
    if (!this.#isOver) this.#controls.resize?.(checked);
  }

  async #follow(run: Run, signal: AbortSignal): Promise<ProcessExit> {
    const started = (controls: ProgramControls): void => {
      this.#controls = controls;
      this.#begin();
    };
    try {
      const sink = { signal: this.#ending.signal, write: (event: BlockEvent) => this.#write(event) };
      const { exitCode } = await run(sink, { stdin: this.#input?.pieces, started });
      signal.throwIfAborted();
      return { exitCode, ...(this.#isLate && { timedOut: true }) };
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      this.#isOver = true;
      this.#input?.close(notRead());
      for (const handle of this.#handles) handle.close();
      this.#handles.clear();
    }
  }

  #write(event: BlockEvent): Promise<void> | undefined {
    if (event.type !== "stdout" && event.type !== "stderr") return undefined;
    // A program that is being killed ends without its consumers.
    for (const handle of this.#handles) handle.push(event.type, event.data, this.#ending.signal.aborted);
    return this.#hasRoom ? undefined : this.#room.opened;
  }

  get #hasRoom(): boolean {
    if (this.#ending.signal.aborted) return true;
    for (const { hasRoom } of this.#handles) if (!hasRoom) return false;
    return true;
  }
}

/** One caller's access to a program. */
class ProcessHandle implements RunningProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly #process: StartedProcess;
  readonly #isOwner: boolean;
  readonly #stdout: OutputStream;
  readonly #stderr: OutputStream;

  constructor(process: StartedProcess, isOwner: boolean) {
    this.#process = process;
    this.#isOwner = isOwner;
    this.#stdout = new OutputStream(() => process.wake());
    this.#stderr = new OutputStream(() => process.wake());
    this.stdout = this.#stdout.readable;
    this.stderr = this.#stderr.readable;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get hasRoom(): boolean {
    return this.#stdout.hasRoom && this.#stderr.hasRoom;
  }

  /** @param isEnding - the program is being killed, so what there is no room for is dropped. */
  push(type: "stdout" | "stderr", data: Uint8Array | string, isEnding: boolean): void {
    const stream = type === "stdout" ? this.#stdout : this.#stderr;
    if (stream.hasRoom || !isEnding) stream.push(data);
  }

  close(): void {
    this.#stdout.close();
    this.#stderr.close();
  }

  wait(): Promise<ProcessExit> {
    return this.#process.exit;
  }

  kill(signal?: ProcessSignal): Promise<void> {
    return this.#process.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOwner) return this.kill();
    this.#process.leave(this);
    this.close();
  }
}

function noSignal(name: string): InvalidInputError {
  return new InvalidInputError(`There is no signal ${JSON.stringify(name)}`, {
    remedy: 'Use the name of a signal on Linux, such as "SIGTERM" or "SIGINT".',
  });
}

function cannotSend(): InvalidInputError {
  return new InvalidInputError("Only SIGKILL can be sent to this program", {
    remedy: "Call kill() without a signal, or use an image that has Python 3.8 or later.",
  });
}
