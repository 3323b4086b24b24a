import type { Duplex } from "node:stream";
import { ExecutorStoppedError, type ExecutorUsage } from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { DisplayBoard } from "../../displays/display-board.ts";
import { RichEvents } from "../../displays/rich-events.ts";
import { type Place, type PlaceEnd, type PlaceFacts, PlaceGone, type PlaceRuns } from "../../place.ts";
import { type BlockOutcome, type BlockRun, type LeftProgram, type ProgramRun, timeIsUp } from "../../run/block-run.ts";
import type { Sink } from "../../run/sink.ts";
import type { BackendFiles } from "../../workspace/backend-files.ts";
import { InterpreterGone } from "../blocks/running-programs.ts";
import type { ProgramEnd } from "../blocks/supervised-program.ts";
import type { InterpreterRunner, PlannedStep, SupervisedFunctionPlaces, SupervisedPlace } from "../supervised-place.ts";
import type { FunctionModules, InterpretedBlock, Interpreter } from "./interpreters.ts";

/** Time limit for the place below to respond in milliseconds. */
const pingMs = 1000;
const idleEnd = "The Python session ended; its variables are gone.";

/** What the interpreters of one executor have in common. */
export interface InterpreterSettings {
  readonly displays: DisplayBoard;
  readonly functionsModule: string;
  /** True if the executor itself has functions. */
  readonly hasFunctions: boolean;
  /** The place below belongs to another executor, which this one was forked from. */
  readonly isFork: boolean;
  /** The number of blocks so far, for their names in tracebacks. */
  blocks: number;
}

/**
 * An interpreter in which Python variables persist from block to block, and the place in which it runs, where everything
 * else runs as well. It is lost with its variables.
 */
export class InterpreterPlace implements Place {
  readonly facts: PlaceFacts;
  readonly lost: Promise<Error>;
  readonly interpreter: Interpreter;
  /** The place in which it runs. */
  readonly below: SupervisedPlace;
  readonly #supervisor: InterpreterRunner;
  readonly #settings: InterpreterSettings;
  #lose: (reason: Error) => void = () => {};
  /** True while a block runs, whose outcome will report a loss. */
  #isRunning = false;
  #isEnded = false;

  constructor(below: SupervisedPlace, interpreter: Interpreter, settings: InterpreterSettings, lostState?: string) {
    this.below = below;
    this.interpreter = interpreter;
    this.#supervisor = below.interpreters().supervisor;
    this.#settings = settings;
    const { facts } = below;
    // A fork ends with its program, wherever its original goes.
    const own = {
      stateful: true,
      displays: interpreter.displays,
      // The memory of an interpreter that lives on is not that of a block.
      usage: (facts.capabilities?.usage ?? []).filter((figure) => figure !== "peakMemoryBytes"),
      ...(settings.isFork && facts.session && { keepAlive: false, keepsRuns: false }),
    };
    const before = lostState === undefined ? {} : { lostState };
    this.facts = { ...facts, capabilities: { ...facts.capabilities, ...own }, ...before };
    this.lost = new Promise((resolve) => {
      this.#lose = resolve;
    });
    void interpreter.ended.then((lost) => {
      if (!this.#isRunning && !this.#isEnded) this.#lose(lost ?? new Error(idleEnd));
    });
  }

  get files(): BackendFiles {
    return this.below.files;
  }

  get watch(): Place["watch"] {
    return this.below.watch;
  }

  diskUsage(atMost: number): Promise<number> {
    return this.below.diskUsage(atMost);
  }

  usage(): Promise<Omit<ExecutorUsage, "diskBytes">> {
    return this.below.usage();
  }

  functionPlaces(): SupervisedFunctionPlaces {
    return this.below.functionPlaces();
  }

  openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    return this.below.openHostCalls(accept);
  }

  run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
    if (block.language !== "python") return this.below.run(block, sink);
    return this.below.run(block, sink, (env) => this.#interpret({ ...block, env }, sink));
  }

  /** A fork ends with its program. */
  get runs(): PlaceRuns | undefined {
    const { isFork, displays } = this.#settings;
    const plan = (block: BlockRun): PlannedStep => {
      if (block.language !== "python") return this.below.planBlock(block);
      return this.below.planBlock(block, (env) => this.interpreter.framesOf(this.#request({ ...block, env })));
    };
    return isFork ? undefined : this.below.runs?.with({ plan, displays });
  }

  runProgram(program: ProgramRun, sink: Sink): Promise<BlockOutcome> {
    return this.below.runProgram(program, sink);
  }

  connectPort(port: number): Duplex {
    return this.below.connectPort(port);
  }

  /** A fork ends with its program. */
  async leftPrograms(): Promise<readonly LeftProgram[]> {
    return this.#settings.isFork ? [] : this.below.leftPrograms();
  }

  stopping(isDetached: boolean): void {
    if (!this.#settings.isFork) this.below.stopping(isDetached);
  }

  async copy(signal: AbortSignal): Promise<InterpreterPlace> {
    const interpreter = await this.#supervisor.forkInterpreter(this.interpreter, signal);
    return new InterpreterPlace(this.below, interpreter, { ...this.#settings, isFork: true });
  }

  /** Ends the interpreter and everything that its blocks have left running, unless the place below ends with it. */
  async end(_: PlaceEnd): Promise<void> {
    this.#isEnded = true;
    if (this.#settings.isFork) await this.interpreter.end();
  }

  async #interpret(block: BlockRun, sink: Sink): Promise<ProgramEnd> {
    const { signal } = sink;
    const { interpreter } = this;
    const displays = this.#settings.displays.forBlock();
    const events = new RichEvents(displays, sink);
    const request = this.#request(block);
    this.#isRunning = true;
    try {
      const end = await events.of((pieces) => interpreter.run(request, pieces));
      // It may have reported the block's end before it could be killed.
      if (events.isForged) await interpreter.end();
      const stateLost = interpreter.isOver;
      // It may have ended because its place is ending, which then says why.
      if (stateLost) await within(pingMs, this.#supervisor.ping());
      this.#tellLoss(signal);
      return { ...end, stateLost: stateLost && isReported(signal), truncated: displays.truncated };
    } catch (error) {
      if (error instanceof InterpreterGone) {
        signal.throwIfAborted();
        interpreter.finish();
        throw new PlaceGone(idleEnd);
      }
      this.#tellLoss(signal, error);
      throw error;
    } finally {
      this.#isRunning = false;
    }
  }

  #request({ code, filename, env, stdin, ...block }: BlockRun): InterpretedBlock {
    this.#settings.blocks += 1;
    const name = filename ?? `<block ${this.#settings.blocks}>`;
    return { code, name, env, modules: this.#modules(block), ...(stdin !== undefined && { stdin }) };
  }

  /** Where a block finds functions; `null` if there are none. */
  #modules({ hostCalls, setup }: Pick<BlockRun, "hostCalls" | "setup">): FunctionModules | null {
    const { functionsModule, hasFunctions } = this.#settings;
    if (!hasFunctions && !hostCalls && !setup) return null;
    const { python: root, pythonPackages: packages = null } = this.functionPlaces();
    const directory = hostCalls?.variant === undefined ? root : `${root}/${hostCalls.variant}`;
    return { root, directory, packages, names: [functionsModule, `_${functionsModule}_host`] };
  }

  /** @param error - why the block failed, if it did. */
  #tellLoss(signal: AbortSignal, error?: unknown): void {
    // Stopping and restarting lose the state on purpose.
    if (!this.interpreter.isOver || (signal.aborted && ExecutorStoppedError.isInstance(signal.reason))) return;
    const reason = signal.aborted
      ? "The Python session was ended with the block that ran in it; its variables are gone."
      : "The Python session ended while it ran a block; its variables are gone.";
    this.#lose(error instanceof Error ? error : new Error(reason));
  }
}

/** The outcome of an aborted call is not reported. */
function isReported({ aborted, reason }: AbortSignal): boolean {
  return !aborted || reason === timeIsUp;
}
