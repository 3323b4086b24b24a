import { randomUUID } from "node:crypto";
import type { ExecutorProcesses } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { CellLines, line, outputLine } from "./cell-lines.ts";
import { InterpreterFailure } from "./interpreter-failure.ts";
import { Interpreter, InterpreterLost } from "./interpreter.ts";
import { type Language, languageNames } from "./languages.ts";

/** How long a cell may take to end after an interrupt, in milliseconds. Halfway through, it is interrupted again. */
const graceMs = 5000;
/** Executions that may wait for their turn. */
const mostWaiting = 100;

/** What contexts need of their sandbox. */
export interface ContextSurroundings {
  readonly processes: () => ExecutorProcesses;
  /** For every interpreter. */
  readonly env: Readonly<Record<string, string>>;
  /** The home directory; `undefined` if it is not known. */
  readonly home: string | undefined;
}

/** Code to run in a context. */
export interface Execution {
  readonly code: string;
  readonly env: Readonly<Record<string, string>>;
}

/** How far an execution is. */
interface Attempt {
  /** The code may have run. */
  isBegun: boolean;
  /** The interpreter that has got the code, until it is done with it. */
  running: Interpreter | undefined;
}

/** A context: an interpreter whose variables live from one execution to the next. */
export class Context {
  readonly id: string = randomUUID();
  readonly language: Language;
  readonly cwd: string;
  readonly #surroundings: ContextSurroundings;
  #interpreter: Interpreter | undefined;
  #opening: Promise<Interpreter> | undefined;
  /** Resolves when the last execution that was asked for has ended. */
  #turns: Promise<void> = Promise.resolve();
  #waiting = 0;
  #count = 0;
  /** Why the variables are gone, until a client is told. */
  #loss: string | undefined;
  #isRemoved = false;

  constructor(language: Language, cwd: string, surroundings: ContextSurroundings) {
    this.language = language;
    this.cwd = cwd;
    this.#surroundings = surroundings;
  }

  /** What clients know of it. */
  get description(): { readonly id: string; readonly language: string; readonly cwd: string } {
    return { id: this.id, language: this.language.name, cwd: this.cwd };
  }

  /**
   * Runs code once all earlier executions have ended, and yields the lines that report it. A reader that stops, or aborts the
   * signal, interrupts it.
   *
   * @throws InterpreterFailure if too many executions wait.
   * @throws `signal.reason` if it is aborted.
   */
  async *execute(execution: Execution, signal: AbortSignal): AsyncGenerator<string, void, void> {
    const release = await this.#takeTurn(signal);
    const attempt: Attempt = { isBegun: false, running: undefined };
    try {
      this.#count += 1;
      yield line({ type: "number_of_executions", execution_count: this.#count });
      yield* this.#attempt(execution, attempt, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof InterpreterLost) yield this.#tellLoss(error);
      else if (error instanceof InterpreterFailure) yield errorLine("InterpreterNotAvailable", error.message);
      else throw error;
    } finally {
      if (attempt.running) void this.#interrupt(attempt.running).finally(release);
      else release();
    }
  }

  /**
   * Starts the interpreter, unless it runs.
   *
   * @throws InterpreterFailure if it cannot be started.
   */
  async start(): Promise<void> {
    await this.#open();
  }

  /** Replaces the interpreter, and forgets all variables. */
  async restart(): Promise<void> {
    await this.#opening?.catch(() => {});
    const old = this.#interpreter;
    this.#interpreter = undefined;
    await old?.end();
    this.#loss = undefined;
    this.#count = 0;
  }

  /** Ends the interpreter for good. */
  async remove(): Promise<void> {
    this.#isRemoved = true;
    await this.restart();
  }

  /** Runs the code, in another interpreter if the one that it was for has ended since the last execution. */
  async *#attempt(execution: Execution, attempt: Attempt, signal: AbortSignal): AsyncGenerator<string, void, void> {
    for (const isLast of [false, true]) {
      const interpreter = await untilAborted(this.#open(), signal);
      if (this.#loss !== undefined) yield outputLine("stderr", `${this.#loss}\n`);
      this.#loss = undefined;
      try {
        attempt.running = interpreter;
        yield* this.#follow(interpreter, { execution, attempt, signal });
        attempt.running = undefined;
        return;
      } catch (error) {
        if (!(error instanceof InterpreterLost)) throw error;
        attempt.running = undefined;
        void interpreter.end();
        if (attempt.isBegun || isLast || this.#isRemoved) throw error;
        this.#loss = `${error.message} after the last execution, so this context was restarted: its variables are lost.`;
      }
    }
  }

  async *#follow(
    interpreter: Interpreter,
    { execution, attempt, signal }: { execution: Execution; attempt: Attempt; signal: AbortSignal },
  ): AsyncGenerator<string, void, void> {
    const lines = new CellLines();
    await untilAborted(interpreter.run({ ...execution, number: this.#count }), signal);
    for (;;) {
      const event = await untilAborted(interpreter.next(), signal);
      interpreter.take();
      if (event.kind === "done") break;
      attempt.isBegun ||= event.kind === "begun";
      yield* lines.of(event);
    }
    yield* lines.end();
  }

  #open(): Promise<Interpreter> {
    return (this.#opening ??= this.#start().finally(() => (this.#opening = undefined)));
  }

  async #start(): Promise<Interpreter> {
    if (this.#isRemoved) throw new InterpreterFailure(404, `Context ${this.id} not found`);
    const old = this.#interpreter;
    if (old && !old.isLost) return old;
    if (old) await old.end();
    if (!this.language.start) {
      throw new InterpreterFailure(500, `This server does not run ${this.language.name}; it runs ${languageNames()}`);
    }
    const { processes, env, home } = this.#surroundings;
    const interpreter = await Interpreter.start({
      processes: processes(),
      language: this.language,
      cwd: this.cwd,
      env: { ...(home !== undefined && { HOME: home }), ...env },
    });
    this.#interpreter = interpreter;
    return interpreter;
  }

  /** Waits for the end of all earlier executions; returns what lets the next one begin. */
  async #takeTurn(signal: AbortSignal): Promise<() => void> {
    if (this.#waiting >= mostWaiting) {
      throw new InterpreterFailure(429, `More than ${mostWaiting} executions wait for this context`);
    }
    const before = this.#turns;
    let release: () => void = () => {};
    const turn = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#turns = before.then(() => turn);
    this.#waiting += 1;
    try {
      await untilAborted(before, signal);
      return release;
    } catch (error) {
      release();
      throw error;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Ends the running cell; ends its interpreter if it goes on. */
  async #interrupt(interpreter: Interpreter): Promise<void> {
    const done = untilDone(interpreter);
    for (const patienceMs of [graceMs / 2, graceMs / 2]) {
      interpreter.interrupt();
      if (await within(patienceMs, done)) return;
    }
    await interpreter.end();
    this.#loss =
      "The last execution did not end when it was interrupted, so this context was restarted: its variables are lost.";
  }

  #tellLoss(error: InterpreterLost): string {
    const reason = this.#isRemoved ? "The context was removed" : error.message;
    return errorLine("ContextRestarted", `${reason}; the variables of this context are lost.`);
  }
}

/** Drops what a cell still reports until it has ended; resolves with true then, or if the interpreter is lost. */
async function untilDone(interpreter: Interpreter): Promise<true> {
  try {
    for (;;) {
      const { kind } = await interpreter.next();
      interpreter.take();
      if (kind === "done") return true;
    }
  } catch {
    return true;
  }
}

function errorLine(name: string, value: string): string {
  return line({ type: "error", name, value, traceback: "" });
}
