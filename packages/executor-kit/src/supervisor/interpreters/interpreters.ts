import { BackendUnavailableError } from "@fenced/core";
import { afterMs, within } from "@fenced/core/abort";
import type { OutputPiece, Sink } from "../../run/sink.ts";
import { framesOf, type RunningPrograms, type Send, windowBytes } from "../blocks/running-programs.ts";
import type { ProgramEnd } from "../blocks/supervised-program.ts";
import { interpreterProgram, sessionsProgram } from "../python-programs.ts";
import { framePieces, frameType, type OutputName } from "../wire/wire.ts";

/** Time limit for starting or forking an interpreter in milliseconds. */
const readyMs = 30_000;
/** Time limit for killing one in milliseconds. */
const endMs = 10_000;

/** How to start an interpreter. */
export interface InterpreterProgram {
  /** The Python command, to which `-c` and a program are appended. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The directory of the shell commands that call host functions. */
  readonly commands: string;
  /** Modules to import before the first block; those that fail to import are skipped. */
  readonly preload: readonly string[];
  /** It takes a fork's place, so another host does not go on with it. Default: false. */
  readonly isCopy?: boolean;
}

/** A block to run in an interpreter that lives on. */
export interface InterpretedBlock {
  readonly code: string;
  /** The file name to show in tracebacks. */
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where it finds functions; `null` if the executor has none. */
  readonly modules: FunctionModules | null;
  /** Default: standard input is empty. */
  readonly stdin?: string;
}

/** The directories of function modules. */
export interface FunctionModules {
  /** The directory that calls share; those of single calls are below it. */
  readonly root: string;
  /** The directory of this call. */
  readonly directory: string;
  /** The directory of the packages that functions require; `null` if they are in the Python environment itself. */
  readonly packages: string | null;
  /** Names of the modules that differ from call to call. */
  readonly names: readonly string[];
}

/** A caller that waits for an interpreter. */
interface Waiting {
  /** Takes the answer at once: the end of the interpreter may be the next report. */
  readonly answer: (answer: string) => void;
  readonly reject: (error: unknown) => void;
}

/** The connection to the supervisor. */
interface Connection {
  readonly send: Send;
  readonly programs: RunningPrograms;
}

/** A session that is being ended. */
interface Ending {
  readonly gone: Promise<true>;
  readonly settle: () => void;
}

/** A supervisor's interpreters that live from block to block. */
export class Interpreters {
  readonly #connection: Connection;
  readonly #waiting = new Map<number, Waiting>();
  readonly #open = new Map<number, Interpreter>();
  readonly #ending = new Map<number, Ending>();
  /** The last one that the supervisor has opened for a submitted run. */
  #reopened: Interpreter | undefined;
  #lost: Error | undefined;
  #loaded: boolean;

  /** @param isLoaded - an earlier host has used interpreters there. */
  constructor(send: Send, programs: RunningPrograms, isLoaded: boolean) {
    this.#connection = { send, programs };
    this.#loaded = isLoaded;
  }

  /** Takes over an interpreter of an earlier host. */
  adopt({ number, displays }: Pick<Interpreter, "number" | "displays">): Interpreter {
    return this.#add(number, displays);
  }

  /** Returns the interpreter that the supervisor has opened in place of one that had ended, once, if it lives. */
  takeReopened(): Interpreter | undefined {
    const interpreter = this.#reopened;
    this.#reopened = undefined;
    return interpreter?.isOver === false ? interpreter : undefined;
  }

  /** @throws BackendUnavailableError if Python does not start; `signal.reason` if it is aborted first. */
  async open(program: InterpreterProgram, signal: AbortSignal): Promise<Interpreter> {
    const { programs } = this.#connection;
    if (!this.#loaded) this.#connection.send(frameType.session, 0, Buffer.from(sessionsProgram));
    this.#loaded = true;
    const variables = Object.entries(program.env).map(([name, value]) => `${name}=${value}`);
    const lists = [program.command, program.preload].flatMap((words) => [words.length, ...words]);
    const order = [
      interpreterProgram,
      program.commands,
      program.isCopy === true ? "copy" : "",
      ...lists,
      ...variables,
      programs.newMark(),
    ];
    const number = programs.newNumber();
    return this.#ask(number, { words: ["open", ...order], signal }, (answer) => {
      const [said, displays] = answer.split(" ");
      if (said !== "ready") throw notStarted(answer);
      return this.#add(number, displays === "1");
    });
  }

  /**
   * Forks an interpreter in which no block is running.
   *
   * @throws BackendUnavailableError if that fails; `signal.reason` if it is aborted first.
   */
  async fork({ number: old, displays }: Interpreter, signal: AbortSignal): Promise<Interpreter> {
    const number = this.#connection.programs.newNumber();
    return this.#ask(number, { words: ["fork", old], signal }, (answer) => {
      if (!answer.startsWith("ready")) throw notForked();
      return this.#add(number, displays);
    });
  }

  /** Handles a report from the supervisor. */
  report(type: number, number: number, payload: Buffer): void {
    if (type === frameType.sessionTold) {
      const answer = payload.toString();
      if (answer.startsWith("reopened ")) this.#reopened = this.#add(number, answer.endsWith(" 1"));
      else this.#waiting.get(number)?.answer(answer);
    } else {
      this.#open.get(number)?.finish();
      this.#open.delete(number);
      this.#ending.get(number)?.settle();
    }
  }

  fail(error: Error): void {
    this.#lost = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    for (const each of this.#open.values()) each.finish(error);
    for (const { settle } of this.#ending.values()) settle();
  }

  #add(number: number, displays: boolean): Interpreter {
    const made = new Interpreter(number, { displays, end: () => this.#end(number) }, this.#connection);
    this.#open.set(number, made);
    return made;
  }

  /** The session may have ended, and what its blocks have left running live on. */
  async #end(number: number): Promise<void> {
    if (this.#lost) return;
    const ending = this.#ending.get(number) ?? newEnding();
    this.#ending.set(number, ending);
    this.#connection.send(frameType.session, number, Buffer.from("end\0"));
    const isGone = await within(endMs, ending.gone);
    this.#ending.delete(number);
    if (isGone !== true) throw notEnded();
  }

  async #ask(
    number: number,
    { words, signal }: { readonly words: readonly (string | number)[]; readonly signal: AbortSignal },
    make: (answer: string) => Interpreter,
  ): Promise<Interpreter> {
    if (this.#lost) throw this.#lost;
    signal.throwIfAborted();
    const { send } = this.#connection;
    const cancel = (error: unknown): void => {
      send(frameType.session, number, Buffer.from("end\0"));
      this.#waiting.get(number)?.reject(error);
    };
    const abort = (): void => cancel(signal.reason);
    const stop = afterMs(readyMs, () => cancel(notReady()));
    signal.addEventListener("abort", abort, { once: true });
    try {
      return await new Promise<Interpreter>((resolve, reject) => {
        const answer = (text: string): void => {
          this.#waiting.delete(number);
          const made = new Promise<Interpreter>((done) => {
            done(make(text));
          });
          resolve(made);
        };
        this.#waiting.set(number, { answer, reject });
        send(frameType.session, number, Buffer.from(words.join("\0")));
      });
    } finally {
      this.#waiting.delete(number);
      stop();
      signal.removeEventListener("abort", abort);
    }
  }
}

/** A Python interpreter that lives from block to block. */
export class Interpreter {
  readonly number: number;
  /** True if it shows values the way IPython does. */
  readonly displays: boolean;
  /** Resolves when it has ended; to an error if that is because its supervisor was lost. */
  readonly ended: Promise<Error | undefined>;
  isOver = false;
  readonly #connection: Connection;
  readonly #end: () => Promise<void>;
  #finish: (error?: Error) => void = () => {};

  constructor(
    number: number,
    { displays, end }: { readonly displays: boolean; readonly end: () => Promise<void> },
    connection: Connection,
  ) {
    this.number = number;
    this.displays = displays;
    this.#end = end;
    this.#connection = connection;
    this.ended = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  finish(error?: Error): void {
    this.isOver = true;
    this.#finish(error);
  }

  /**
   * Runs a block; the previous one must have ended. The sink's signal kills the interpreter and everything that the
   * block started.
   *
   * @throws InterpreterGone if the interpreter ended before the block began.
   */
  run(block: InterpretedBlock, sink: Sink<OutputPiece<OutputName>>): Promise<ProgramEnd> {
    const { programs, send } = this.#connection;
    return programs.runRich(sink, (number) => this.#start(number, block, send));
  }

  /** Returns the frames that run a block, for a submitted run. */
  framesOf(block: InterpretedBlock): Buffer {
    return framesOf((send) => this.#start(this.#connection.programs.newNumber(), block, send));
  }

  #start(number: number, { stdin, ...block }: InterpretedBlock, send: Send): void {
    const mark = this.#connection.programs.newMark();
    const env = { ...block.env, FENCED_BLOCK: mark.slice(mark.indexOf("=") + 1) };
    const code = Buffer.from(JSON.stringify({ ...block, env }));
    const verb = Buffer.from("code\0");
    for (const part of framePieces(code)) send(frameType.session, number, Buffer.concat([verb, part]));
    if (stdin !== undefined) for (const part of framePieces(Buffer.from(stdin))) send(frameType.input, number, part);
    send(frameType.session, number, Buffer.from(["run", this.number, mark, windowBytes].join("\0")));
  }

  /**
   * Ends the interpreter, unless it has ended, and everything that its blocks have left running.
   *
   * @throws BackendUnavailableError if they do not end within 10 s.
   */
  end(): Promise<void> {
    return this.#end();
  }
}

function newEnding(): Ending {
  let settle = (): void => {};
  const gone = new Promise<true>((resolve) => {
    settle = () => resolve(true);
  });
  return { gone, settle };
}

function notStarted(answer: string): BackendUnavailableError {
  const reason = answer === "failed" ? "" : `: ${answer}`;
  return new BackendUnavailableError(`The Python session did not start${reason}`, {
    remedy:
      "It needs Python 3.8 or later, and room for one more process: check `languages`, `memoryBytes` and `pidsLimit`.",
  });
}

function notReady(): BackendUnavailableError {
  return new BackendUnavailableError(`The Python session did not answer within ${readyMs / 1000} s`, {
    remedy: "Call restart() to start a new one.",
  });
}

function notEnded(): BackendUnavailableError {
  return new BackendUnavailableError(`The Python session did not end within ${endMs / 1000} s after it was killed`, {
    remedy: "Call restart(), or stop() and start().",
  });
}

function notForked(): BackendUnavailableError {
  return new BackendUnavailableError("The Python session could not be forked", {
    remedy: "It may have ended, or there is no room for more processes: raise `pidsLimit` and `memoryBytes`.",
  });
}
