import { readFileSync } from "node:fs";
import type { Duplex, Writable } from "node:stream";
import { BackendUnavailableError, type ExecutorUsage } from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { ProgramControls } from "../run/block-run.ts";
import type { OutputPiece, Sink } from "../run/sink.ts";
import { LeftPrograms, type SupervisedLeftProgram } from "./blocks/left-programs.ts";
import { ProgramFeeds } from "./blocks/program-feeds.ts";
import { framesOf, RunningPrograms, type Send } from "./blocks/running-programs.ts";
import { sendProgram } from "./blocks/send-program.ts";
import type { ProgramEnd, SupervisedProgram, WarmPrograms } from "./blocks/supervised-program.ts";
import { Measurements } from "./files/measurements.ts";
import { placeUsage } from "./files/place-usage.ts";
import { type Interpreter, type InterpreterProgram, Interpreters } from "./interpreters/interpreters.ts";
import { measureProgram, spareProgram, templateProgram, usageProgram, warmProgram } from "./python-programs.ts";
import { SupervisedRuns } from "./runs/supervised-runs.ts";
import type { ConnectOptions, LeftInterpreters } from "./start/connect-supervisor.ts";
import { type NetworkEntrance, Tunnels } from "./tunnels/tunnels.ts";
import { FrameStream } from "./wire/frame-stream.ts";
import { FrameReader, frameType, hostMagic, type Receiver } from "./wire/wire.ts";

const waitingProgram: string = readFileSync(new URL("./warm/waiting.cjs", import.meta.url), "utf8");

/** Time limit for killed programs to end in milliseconds. */
const killMs = 10_000;
/** Time limit for opening a socket or a port in milliseconds. */
const openingMs = 30_000;

/** A caller that waits for an answer. */
interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** What a supervisor's host knows of it. */
interface SupervisorSettings extends Pick<ConnectOptions, "isCut"> {
  readonly direct: boolean;
  /** Called once, when the supervisor misbehaves and can no longer be used. */
  readonly lose: (error: Error) => void;
  /** The highest number that something of an earlier host has. */
  readonly last: number;
  readonly interpreters: LeftInterpreters | undefined;
  /** An earlier host has submitted runs. */
  readonly hasRuns: boolean;
  /** Path of a Python that can watch directories, if there is one. */
  readonly watcher: string | undefined;
}

/**
 * Runs programs through a supervisor, concurrently over a single stream, with back-pressure for each. Everything that a
 * program started can be killed along with it, however its processes hide. Created by `connectSupervisor`.
 */
export class Supervisor {
  /**
   * The supervisor is reached over a socket in a shared directory, not through the daemon that carries its standard
   * streams.
   */
  readonly direct: boolean;
  /** Path of a Python that can watch directories, if there is one. */
  readonly watcher: string | undefined;
  /** Submitted runs, which go on without this program. */
  readonly runs: SupervisedRuns;
  readonly #frames: FrameStream;
  readonly #lose: (error: Error) => void;
  readonly #isCut: () => boolean;
  readonly #programs: RunningPrograms;
  /** The interpreters of an earlier host. */
  #left: LeftInterpreters | undefined;
  readonly #feeds: ProgramFeeds;
  #interpreters: Interpreters | undefined;
  readonly #pings: Waiting[] = [];
  readonly #resets: Waiting[] = [];
  readonly #measurements: Measurements<number>;
  readonly #usages: Measurements<Omit<ExecutorUsage, "diskBytes">>;
  readonly #leftPrograms: LeftPrograms;
  readonly #tunnels: Tunnels = new Tunnels(
    (type, number, payload) => this.#frames.sendThrough(type, number, payload),
    (type, number, payload, sent) => this.#frames.sendPiece(type, number, payload, sent),
  );
  #lost: Error | undefined;

  /** @param stream - leads to the supervisor. */
  constructor(
    stream: Writable,
    { direct, lose, isCut = () => false, last, interpreters, hasRuns, watcher }: SupervisorSettings,
  ) {
    this.direct = direct;
    this.watcher = watcher;
    this.#frames = new FrameStream(stream, { drained: () => this.#tunnels.resume(), lose });
    this.#lose = lose;
    this.#isCut = isCut;
    this.#left = interpreters;
    this.#feeds = new ProgramFeeds(this.#send);
    this.#programs = new RunningPrograms(this.#send, { lose, isCut, last });
    this.#measurements = new Measurements(this.#send, {
      type: frameType.measure,
      program: measureProgram,
      read: Number,
      what: "The workspace",
    });
    this.#usages = new Measurements(this.#send, {
      type: frameType.usage,
      program: usageProgram,
      read: placeUsage,
      what: "What the place uses",
    });
    this.#leftPrograms = new LeftPrograms(this.#send, {
      controls: (number, pid) => this.#controls(number, pid),
      follow: (number, sink, stdin) => this.#followProgram(number, sink, stdin),
    });
    this.runs = new SupervisedRuns(this.#send, {
      newNumber: () => this.#programs.newNumber(),
      isLoaded: hasRuns,
      lose,
      isCut,
    });
    stream.write(hostMagic);
  }

  /** The connection to it is broken and may come back. */
  get isCut(): boolean {
    return this.#isCut();
  }

  /**
   * Runs a program to its end: writes its output to the sink, whose signal kills everything that it started. Processes
   * that it leaves running stay alive until `reset`.
   *
   * @throws BackendUnavailableError if the program cannot be started, or does not end within 10 s after it is killed;
   * the error passed to `fail`, if the supervisor is lost.
   */
  async run(program: SupervisedProgram, sink: Sink<OutputPiece>): Promise<ProgramEnd> {
    if (this.#lost) throw this.#lost;
    const { started } = program.alongside ?? {};
    return this.#programs.run(sink, (number) => this.#start(number, program, this.#send), {
      ended: (number) => this.#feeds.end(number),
      started: started && ((number, pid) => started(this.#controls(number, pid))),
    });
  }

  /**
   * Returns the programs alongside blocks that earlier hosts have started; those that have ended only once.
   *
   * @throws the error passed to `fail`, if the supervisor is lost.
   */
  async leftPrograms(): Promise<readonly SupervisedLeftProgram[]> {
    if (this.#lost) throw this.#lost;
    return this.#leftPrograms.list();
  }

  /** Returns the frames that start a program, for a submitted run. Its input must be known. */
  framesOf(program: SupervisedProgram): Buffer {
    return framesOf((send) => this.#start(this.#programs.newNumber(), program, send));
  }

  /**
   * Starts a Python interpreter that lives from block to block.
   *
   * @throws BackendUnavailableError if it does not start; `signal.reason` if it is aborted first.
   */
  openInterpreter(program: InterpreterProgram, signal: AbortSignal): Promise<Interpreter> {
    return this.#living.open(program, signal);
  }

  /**
   * Returns the interpreter that an earlier host has left, or that a submitted run has needed, once; `undefined` if
   * there is none.
   */
  takeInterpreter(): Interpreter | undefined {
    const interpreters = this.#living;
    const reopened = interpreters.takeReopened();
    if (reopened) return reopened;
    const [first] = this.#left?.living ?? [];
    this.#left = undefined;
    return first && interpreters.adopt(first);
  }

  /**
   * Forks an interpreter between two blocks: the fork gets a copy of its variables.
   *
   * @throws BackendUnavailableError if that fails; `signal.reason` if it is aborted first.
   */
  forkInterpreter(interpreter: Interpreter, signal: AbortSignal): Promise<Interpreter> {
    return this.#living.fork(interpreter, signal);
  }

  /**
   * Kills everything that programs left running; running programs end as killed.
   *
   * @throws BackendUnavailableError if they do not end within 10 s.
   */
  async reset(): Promise<void> {
    const done = this.#answer(frameType.reset, this.#resets).then(() => true);
    if ((await this.#within(killMs, done)) !== true) throw notReset();
  }

  /**
   * Resolves when the supervisor responds. Also tells its keeper that the host is alive. Never settles if the
   * supervisor stays silent, so add a time limit.
   *
   * @throws the error passed to `fail`, if the supervisor is lost.
   */
  ping(): Promise<void> {
    return this.#answer(frameType.ping, this.#pings);
  }

  /**
   * Measures the disk space of the work directory, with deleted files that programs hold open; stops counting beyond
   * `atMost`.
   *
   * @throws BackendUnavailableError if there is no answer; the error passed to `fail`, if the supervisor is lost.
   */
  async measure(atMost: number): Promise<number> {
    if (this.#lost) throw this.#lost;
    return this.#measurements.measure(`${Math.min(atMost, Number.MAX_SAFE_INTEGER)}\0`);
  }

  /**
   * Reads what the place uses, but for the disk space of the work directory.
   *
   * @throws as `measure`.
   */
  async usage(): Promise<Omit<ExecutorUsage, "diskBytes">> {
    if (this.#lost) throw this.#lost;
    return this.#usages.measure();
  }

  /**
   * Keeps interpreters waiting: a Python interpreter from which programs are forked, and a JavaScript interpreter that
   * becomes the next program and runs only while no program does. They start while no program runs. Until they are
   * ready, and where they cannot be used, each program starts its own interpreter.
   */
  keepWarm({ python, preload = [], node, env }: WarmPrograms): void {
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const send = (number: number, fields: readonly (string | number)[]): void =>
      this.#send(frameType.warm, number, Buffer.from([...fields, ...variables].join("\0")));
    if (python !== undefined) send(0, [warmProgram, templateProgram, python, preload.length, ...preload]);
    if (node !== undefined) send(1, [spareProgram, waitingProgram, node.length, ...node]);
  }

  /**
   * Lets programs connect to this process, over a socket that the supervisor creates; they need no network for this.
   *
   * @param accept - receives each connection. Replaces the previous callback.
   * @returns the address as those programs see it: `unix:/tmp/session/calls`.
   * @throws BackendUnavailableError if the socket cannot be created.
   */
  openCalls(accept: (connection: Duplex) => void): Promise<string> {
    if (this.#lost) throw this.#lost;
    return this.#opened(this.#tunnels.openCalls(accept));
  }

  /**
   * Lets programs connect to a proxy in this process, over a loopback port where the supervisor runs; the place needs
   * no network for this.
   *
   * @param accept - receives each connection, at most 256 at a time. Replaces the previous callback.
   * @param authorities - PEM certificates that programs should trust in addition to those of the place. Default: none.
   * @throws BackendUnavailableError if the port cannot be opened.
   */
  openNetwork(accept: (connection: Duplex) => void, authorities?: string): Promise<NetworkEntrance> {
    if (this.#lost) throw this.#lost;
    return this.#opened(this.#tunnels.openNetwork(accept, authorities));
  }

  /**
   * Connects to a loopback port where the supervisor runs, on which a program listens; the place needs no network for
   * this.
   *
   * @throws BackendUnavailableError if there are too many connections.
   */
  connect(port: number): Duplex {
    if (this.#lost) throw this.#lost;
    return this.#tunnels.connect(port);
  }

  /** Call this when the supervisor is gone: running programs and all later calls fail with `error`. */
  fail(error: Error): void {
    if (this.#lost) return;
    this.#lost = error;
    this.#frames.close();
    this.#programs.fail(error);
    this.#interpreters?.fail(error);
    this.#feeds.endAll();
    for (const { reject } of [...this.#resets.splice(0), ...this.#pings.splice(0)]) reject(error);
    this.#measurements.fail(error);
    this.#leftPrograms.fail(error);
    this.#usages.fail(error);
    this.runs.fail(error);
    this.#tunnels.fail(error);
  }

  /**
   * Returns a receiver for what arrives from the supervisor on one stream; each stream has its own frames.
   *
   * @internal
   */
  receiver(): Receiver {
    const frames = new FrameReader({
      output: (type, number, bytes) => this.#programs.output(type, number, bytes),
      report: (type, number, payload) => this.#report(type, number, payload),
    });
    return (bytes) => {
      try {
        frames.push(bytes);
      } catch (error) {
        this.#lose(error instanceof Error ? error : new Error(String(error)));
      }
    };
  }

  /** Handles a report from the supervisor. */
  #report(type: number, number: number, payload: Buffer): void {
    if (type === frameType.done) this.#resets.shift()?.resolve();
    if (type === frameType.pong) this.#pings.shift()?.resolve();
    else if (type === frameType.fed) this.#feeds.report(number, payload);
    else if (type === frameType.started) this.#programs.started(number, payload.readUInt32BE(0));
    else if (type === frameType.program) this.#leftPrograms.report(number, payload);
    else if (type === frameType.measured) this.#measurements.report(number, payload);
    else if (type === frameType.used) this.#usages.report(number, payload);
    else if (type === frameType.sessionTold || type === frameType.sessionEnded) {
      this.#interpreters?.report(type, number, payload);
    } else if (type >= frameType.runEntry) {
      this.runs.report(type, number, payload);
    } else if (type >= frameType.listening) this.#tunnels.report(type, number, payload);
    if (type === frameType.exit) this.#programs.ended(number, payload);
  }

  #answer(type: number, waiting: Waiting[]): Promise<void> {
    if (this.#lost) return Promise.reject(this.#lost);
    this.#send(type, 0);
    return new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
    });
  }

  get #living(): Interpreters {
    this.#interpreters ??= new Interpreters(this.#send, this.#programs, this.#left !== undefined);
    if (this.#lost) this.#interpreters.fail(this.#lost);
    return this.#interpreters;
  }

  /** Waits for at most so many milliseconds in which the supervisor can be reached. */
  async #within<T>(milliseconds: number, answer: Promise<T>): Promise<T | undefined> {
    const found = await within(milliseconds, answer);
    return found === undefined && this.#isCut() ? this.#within(milliseconds, answer) : found;
  }

  /** A supervisor that does not open what programs connect to is of no use, for example because code has stopped it. */
  async #opened<T extends string | object>(opening: Promise<T>): Promise<T> {
    const opened = await this.#within(openingMs, opening);
    if (opened !== undefined) return opened;
    const error = notOpened();
    this.#lose(error);
    throw error;
  }

  #controls(number: number, pid: number): ProgramControls {
    const order = (...words: readonly (string | number)[]): void =>
      this.#send(frameType.control, number, Buffer.from(words.join("\0")));
    return {
      pid,
      resize: ({ rows, columns }) => order("size", rows, columns),
      signal: (name) => order("signal", name),
    };
  }

  async #followProgram(
    number: number,
    sink: Sink<OutputPiece>,
    stdin: AsyncIterable<Uint8Array> | undefined,
  ): Promise<ProgramEnd> {
    if (this.#lost) throw this.#lost;
    if (stdin) void this.#feeds.add(number, stdin).run();
    return this.#programs.follow(number, sink, { ended: (each) => this.#feeds.end(each) });
  }

  #start(number: number, program: SupervisedProgram, send: Send): void {
    sendProgram(program, { number, mark: this.#programs.newMark(), send, feeds: this.#feeds });
  }

  readonly #send: Send = (type, number, payload) => this.#frames.send(type, number, payload);
}

function notOpened(): BackendUnavailableError {
  return new BackendUnavailableError(`The supervisor has not answered for ${openingMs / 1000} s`, {
    remedy: "Call again to start a new one.",
  });
}

function notReset(): BackendUnavailableError {
  return new BackendUnavailableError(`Not all processes ended within ${killMs / 1000} s after they were killed`, {
    remedy: "Call stop() and start().",
  });
}
