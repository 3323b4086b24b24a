import type { Duplex } from "node:stream";
import type { BackendSession, PlaceFacts } from "../../backend-session.ts";
import { DisplayBoard } from "../../displays/display-board.ts";
import type { BlockOutcome, BlockRun, ProgramRun } from "../../run/block-run.ts";
import type { Sink } from "../../run/sink.ts";
import type { BackendFiles } from "../../workspace/backend-files.ts";
import type { SupervisedFunctionPlaces, SupervisedSession } from "../supervised-session.ts";
import type { FunctionModules } from "./interpreters.ts";
import { StatefulPython } from "./stateful-python.ts";

/** The underlying session. */
type Inner = SupervisedSession;

/** Settings of a stateful session. */
export interface StatefulOptions {
  /** Where displays are saved. Default: a temporary directory. */
  readonly outputDir: string | undefined;
  /** A directory of this host that the code can change. */
  readonly bound: string | readonly string[] | undefined;
  readonly functionsModule: string;
  /** True if the executor itself has functions. */
  readonly hasFunctions: boolean;
  /** Called when the variables of earlier blocks are gone. `reported`: a block's outcome reports it. */
  readonly onLost: (reason: string, options: { readonly reported: boolean }) => void;
}

interface SessionParts {
  readonly displays: DisplayBoard;
  readonly isFork: boolean;
  readonly family: Set<StatefulPython>;
}

/** Events that a fork reports to its executor. */
export type ForkEvents = Pick<StatefulOptions, "onLost">;

/** A session in which Python variables persist from block to block. */
export class StatefulSession implements BackendSession {
  readonly #inner: Inner;
  readonly #options: StatefulOptions;
  readonly #displays: DisplayBoard;
  readonly #python: StatefulPython;
  /** The facts of the place, completed by those of the interpreter. */
  #known: { readonly place: PlaceFacts; readonly displays: boolean; readonly facts: PlaceFacts } | undefined;
  /** True if the place belongs to another session. */
  readonly #isFork: boolean;
  /** All interpreters in this place. */
  readonly #family: Set<StatefulPython>;

  private constructor(
    inner: Inner,
    options: StatefulOptions,
    parts: SessionParts & { readonly python?: StatefulPython },
  ) {
    this.#inner = inner;
    this.#options = options;
    this.#displays = parts.displays;
    this.#isFork = parts.isFork;
    this.#python = parts.python ?? new StatefulPython(pythonSettings(inner, options, parts));
    this.#family = parts.family.add(this.#python);
  }

  /** @throws BackendUnavailableError if Python does not start there; `inner` is then closed. */
  static async open(inner: Inner, options: StatefulOptions, signal: AbortSignal): Promise<StatefulSession> {
    try {
      return await StatefulSession.#open(inner, options, signal, { isFork: false, family: new Set() });
    } catch (error) {
      await inner.close();
      throw error;
    }
  }

  static async #open(
    inner: Inner,
    options: StatefulOptions,
    signal: AbortSignal,
    parts: Omit<SessionParts, "displays">,
  ): Promise<StatefulSession> {
    const displays = await DisplayBoard.open(options.outputDir, options.bound);
    const session = new StatefulSession(inner, options, { ...parts, displays });
    try {
      await session.#python.start(signal);
      return session;
    } catch (error) {
      parts.family.delete(session.#python);
      await displays.close();
      throw error;
    }
  }

  get facts(): PlaceFacts {
    const { facts } = this.#inner;
    const { displays } = this.#python;
    if (this.#known?.place !== facts || this.#known.displays !== displays) {
      const capabilities = { ...facts.capabilities, stateful: true, displays };
      this.#known = { place: facts, displays, facts: { ...facts, capabilities } };
    }
    return this.#known.facts;
  }

  get files(): BackendFiles {
    return this.#inner.files;
  }

  functionPlaces(): SupervisedFunctionPlaces {
    return this.#inner.functionPlaces();
  }

  openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    return this.#inner.openHostCalls(accept);
  }

  run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
    if (block.language !== "python") return this.#inner.run(block, sink);
    const modules = this.#modules(block);
    return this.#inner.run(block, sink, (env) => this.#python.run({ ...block, env, modules }, sink));
  }

  runProgram(program: ProgramRun, sink: Sink): Promise<BlockOutcome> {
    return this.#inner.runProgram(program, sink);
  }

  repair(signal: AbortSignal): Promise<void> | undefined {
    return this.#inner.repair(signal);
  }

  async reset(signal: AbortSignal): Promise<void> {
    if (this.#isFork) {
      await this.#python.end();
    } else {
      this.#python.forget();
      await this.#inner.reset(signal);
    }
    await this.#python.start(signal);
  }

  stopping(): void {
    if (!this.#isFork) this.#inner.stopping();
  }

  async close(): Promise<void> {
    try {
      await this.#displays.close();
    } finally {
      if (this.#isFork) await this.#python.end();
      else await this.#closePlace();
      this.#family.delete(this.#python);
    }
  }

  async #closePlace(): Promise<void> {
    this.#python.forget();
    try {
      await this.#inner.close();
    } finally {
      for (const each of this.#family) each.forget();
    }
  }

  /**
   * Forks the session between two blocks: the fork has the same variables, in the same place.
   *
   * @throws BackendUnavailableError if that fails; `signal.reason` if it is aborted first.
   */
  async fork(events: ForkEvents, signal: AbortSignal): Promise<StatefulSession> {
    const options = { ...this.#options, ...events };
    const displays = await DisplayBoard.open(options.outputDir, options.bound);
    const parts = { displays, isFork: true, family: this.#family };
    try {
      const python = await this.#python.fork(pythonSettings(this.#inner, options, parts), signal);
      return new StatefulSession(this.#inner, options, { ...parts, python });
    } catch (error) {
      await displays.close();
      throw error;
    }
  }

  /** Opens a session without variables in the same place, for a fork that starts again. */
  openBeside(events: ForkEvents, signal: AbortSignal): Promise<StatefulSession> {
    return StatefulSession.#open(this.#inner, { ...this.#options, ...events }, signal, {
      isFork: true,
      family: this.#family,
    });
  }

  /** Where a block finds functions; `null` if there are none. */
  #modules({ hostCalls, setup }: BlockRun): FunctionModules | null {
    const { functionsModule, hasFunctions } = this.#options;
    if (!hasFunctions && !hostCalls && !setup) return null;
    const { python: root, pythonPackages: packages = null } = this.functionPlaces();
    const directory = hostCalls?.variant === undefined ? root : `${root}/${hostCalls.variant}`;
    return { root, directory, packages, names: [functionsModule, `_${functionsModule}_host`] };
  }
}

function pythonSettings(
  inner: Inner,
  { onLost }: StatefulOptions,
  { displays, isFork }: SessionParts,
): ConstructorParameters<typeof StatefulPython>[0] {
  return { place: (signal) => inner.interpreterPlace(signal), displays, onLost, tellsOfPlace: isFork };
}
