import { ExecutorStoppedError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { DisplayBoard } from "../../displays/display-board.ts";
import { RichEvents } from "../../displays/rich-events.ts";
import { type BlockRun, timeIsUp } from "../../run/block-run.ts";
import type { Sink } from "../../run/sink.ts";
import { InterpreterGone } from "../blocks/running-programs.ts";
import type { ProgramEnd } from "../blocks/supervised-program.ts";
import type { Supervisor } from "../supervisor.ts";
import type { FunctionModules, InterpretedBlock, Interpreter, InterpreterProgram } from "./interpreters.ts";

/** The part of a supervisor that opens interpreters. */
type InterpreterPlace = Pick<Supervisor, "openInterpreter" | "forkInterpreter" | "ping">;

/** A place, and the interpreter to start there. */
export interface StatefulPlace {
  readonly supervisor: InterpreterPlace;
  readonly program: InterpreterProgram;
}

/** Settings of a stateful session of Python. */
export interface StatefulPythonSettings {
  /** Returns the current place, which may have been replaced since the last block. */
  readonly place: (signal: AbortSignal) => Promise<StatefulPlace>;
  readonly displays: DisplayBoard;
  /** Called when the variables of earlier blocks are gone. `reported`: a block's outcome reports it. */
  readonly onLost: (reason: string, options: { readonly reported: boolean }) => void;
  /** Also call `onLost` when the whole place is lost. Default: false, for a session that reports this itself. */
  readonly tellsOfPlace?: boolean;
}

/** A block, and what it needs to run. */
export interface StatefulBlock extends Pick<BlockRun, "code" | "filename" | "stdin" | "env"> {
  /** Where it finds functions; `null` if there are none. */
  readonly modules: FunctionModules | null;
}

/** An interpreter that runs below a supervisor and keeps variables from block to block. Replaced if it has ended. */
export class StatefulPython {
  readonly #settings: StatefulPythonSettings;
  #current: { readonly interpreter: Interpreter; readonly supervisor: InterpreterPlace } | undefined;
  /** True while a block runs, whose outcome will report a loss. */
  #running = false;
  #blocks = 0;

  constructor(settings: StatefulPythonSettings) {
    this.#settings = settings;
  }

  /** True if values are shown the way IPython does; known once there is an interpreter. */
  get displays(): boolean {
    return this.#current?.interpreter.displays ?? false;
  }

  /**
   * Starts an interpreter unless there is one.
   *
   * @throws BackendUnavailableError if it does not start; `signal.reason` if it is aborted first.
   */
  async start(signal: AbortSignal): Promise<Interpreter> {
    if (this.#current && !this.#current.interpreter.isOver) return this.#current.interpreter;
    const { supervisor, program } = await this.#settings.place(signal);
    return this.#take(supervisor, await supervisor.openInterpreter(program, signal));
  }

  /** Runs a block. Blocks must not overlap. */
  async run({ filename, ...block }: StatefulBlock, sink: Sink): Promise<ProgramEnd> {
    const { signal } = sink;
    this.#blocks += 1;
    const request = { ...block, name: filename ?? `<block ${this.#blocks}>` };
    const displays = this.#settings.displays.forBlock();
    const events = new RichEvents(displays, sink);
    this.#running = true;
    try {
      const end = await this.#runIn(request, events);
      // It may have reported the block's end before it could be killed.
      if (events.isForged) await this.#current?.interpreter.end();
      const stateLost = this.#current?.interpreter.isOver === true;
      if (stateLost) {
        // It may have ended because its place is ending, which reports that itself.
        await within(pingMs, this.#current?.supervisor.ping() ?? Promise.resolve());
        this.#tellOfBlock(signal);
      }
      return { ...end, stateLost: stateLost && isReported(signal), truncated: displays.truncated };
    } finally {
      this.#running = false;
    }
  }

  async #runIn(request: InterpretedBlock, events: RichEvents): Promise<ProgramEnd> {
    for (let again = true; ; again = false) {
      const interpreter = await this.start(events.signal);
      try {
        return await events.of((sink) => interpreter.run(request, sink));
      } catch (error) {
        // It ended before the block began, so the block runs in the next one.
        if (!(error instanceof InterpreterGone) || !again) throw error;
        interpreter.finish();
        // While a block runs, nothing else reports the end.
        if (!events.signal.aborted) this.#settings.onLost(idleEnd, { reported: false });
      }
    }
  }

  /**
   * Forks the interpreter; call this while no block runs.
   *
   * @param settings - the fork's settings.
   * @throws BackendUnavailableError if that fails; `signal.reason` if it is aborted first.
   */
  async fork(settings: StatefulPythonSettings, signal: AbortSignal): Promise<StatefulPython> {
    const interpreter = await this.start(signal);
    const fork = new StatefulPython(settings);
    const { supervisor } = await this.#settings.place(signal);
    fork.#take(supervisor, await supervisor.forkInterpreter(interpreter, signal));
    fork.#blocks = this.#blocks;
    return fork;
  }

  /** Forgets an interpreter that was deliberately ended with its place. */
  forget(): void {
    const current = this.#current;
    this.#current = undefined;
    current?.interpreter.finish();
  }

  /** Ends the interpreter and everything that its blocks have left running. */
  async end(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    await current?.interpreter.end();
  }

  #take(supervisor: InterpreterPlace, interpreter: Interpreter): Interpreter {
    const current = { interpreter, supervisor };
    this.#current = current;
    void interpreter.ended.then((lost) => {
      if (this.#current !== current || this.#running) return;
      if (!lost || this.#settings.tellsOfPlace === true) this.#settings.onLost(idleEnd, { reported: false });
    });
    return interpreter;
  }

  #tellOfBlock(signal: AbortSignal): void {
    // Stopping and restarting lose the state on purpose.
    if (signal.aborted && ExecutorStoppedError.isInstance(signal.reason)) return;
    const reason = signal.aborted
      ? "The Python session was ended with the block that ran in it; its variables are gone."
      : "The Python session ended while it ran a block; its variables are gone.";
    this.#settings.onLost(reason, { reported: isReported(signal) });
  }
}

/** Time limit for a place to respond in milliseconds. */
const pingMs = 1000;
const idleEnd = "The Python session ended; its variables are gone.";

/** The outcome of an aborted call is not reported. */
function isReported({ aborted, reason }: AbortSignal): boolean {
  return !aborted || reason === timeIsUp;
}
