import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  BackendUnavailableError,
  ExecutorStoppedError,
  FunctionSetupError,
  InvalidInputError,
  type ExecutorCapabilities,
  type NetworkDecision,
} from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import type { BackendSession, PlaceFacts } from "../backend-session.ts";
import type { FunctionPlaces } from "../functions/function-setup.ts";
import { functionVariables } from "../functions/function-variables.ts";
import {
  blockEnvironment,
  blockSource,
  commandLineCapabilities,
  commandWithoutFile,
  hostFunctionLanguages,
  runsFromAnywhere,
} from "../languages/command-languages.ts";
import type { BlockOutcome, BlockRun, ProgramRun } from "../run/block-run.ts";
import type { Sink } from "../run/sink.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import { isDiskFull } from "../workspace/workspace-errors.ts";
import type { ProgramEnd } from "./blocks/supervised-program.ts";
import type { StatefulPlace } from "./interpreters/stateful-python.ts";
import type { BlockFile, PlaceRunner, SupervisedPlace } from "./supervised-place.ts";
import type { SessionNetwork } from "./tunnels/session-network.ts";
import { interpreterToStart, type WarmOptions, warmPrograms } from "./warm/interpreter-options.ts";

/** How long to wait for the supervisor's reports after a stop in milliseconds, since code may have stopped it. */
const stoppingMs = 1000;

/** The exit code of a program that SIGBUS ended. */
const busError = 135;
const busErrorSentence =
  "\nThe block ended by SIGBUS. That happens to programs that use more shared memory than there is (df -h /dev/shm): use less of it, or raise the memory limit.\n";

/** The variable that marks all programs of an executor; its value is the executor's id. */
export const sessionMark = "FENCED_SESSION";

/** Settings that all places of a session share. */
export interface SupervisedSettings {
  /** The executor's id. */
  readonly id: string;
  /** The executor's environment variables for blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** The functions whose source is copied to the code. */
  readonly functions: readonly unknown[];
  readonly warm: false | WarmOptions | undefined;
  readonly stateful: boolean;
  /** Files of blocks are kept, in the work directory. */
  readonly keepFiles: boolean;
  /** The work directory, as programs see it. */
  readonly workspacePath: string;
  /** The session's own directory, as programs see it. */
  readonly directory: string;
  /** Wraps the command for a block; nothing is then kept warm. Default: no change. */
  readonly wrap?: ((command: readonly string[]) => readonly string[]) | undefined;
  /** The proxy for programs; `undefined` if there is none. */
  readonly network: SessionNetwork | undefined;
  /** The message for a block whose processes were killed because the place ran out of memory. */
  readonly memorySentence: string;
  /** Called when the place was lost and replaced; everything in it is gone. */
  readonly onReplaced: () => void;
  /** Called when the place can no longer be used. */
  readonly onLost: (reason: string) => void;
}

/** Where a session stores its function modules. */
export type SupervisedFunctionPlaces = Omit<FunctionPlaces, "owner"> &
  Required<Pick<FunctionPlaces, "python" | "commands">>;

/** Runs a block in an interpreter that lives on instead of in a new process. */
export type InterpretBlock = (env: Readonly<Record<string, string>>) => Promise<ProgramEnd>;

/**
 * A session whose programs are run by a supervisor. A lost place is replaced for the next block. A backend defines how
 * to open a place and how to close the session.
 */
export abstract class SupervisedSession<Place extends SupervisedPlace = SupervisedPlace> implements BackendSession {
  readonly #settings: SupervisedSettings;
  readonly #closing = new AbortController();
  #current: Place | undefined;
  #facts: PlaceFacts = {};
  #opening: Promise<Place> | undefined;
  #stopping: NodeJS.Timeout | undefined;
  /** A place whose processes could not be ended. */
  #unfit: Place | undefined;

  protected constructor(settings: SupervisedSettings) {
    this.#settings = settings;
  }

  /**
   * Opens a place.
   *
   * @param old - the lost place to replace; what is left of it must not disturb the new one.
   * @throws BackendUnavailableError if it does not open; `signal.reason` if it is aborted first.
   */
  protected abstract openPlace(old: Place | undefined, signal: AbortSignal): Promise<Place>;

  /** Ends the place and everything else that the session has. Called once; no place is opened afterwards. */
  protected abstract closeWith(place: Place | undefined): Promise<void>;

  /** Called before functions are stored in the workspace; do not list their files. */
  protected abstract claimFunctionsPackage(): void;

  /** The current place; `undefined` before the first one and after the last. */
  protected get current(): Place | undefined {
    return this.#current;
  }

  /** Aborted when the session closes. */
  protected get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Returns the current place, or a new one if it was lost. */
  protected async ready(signal: AbortSignal): Promise<Place> {
    if (this.closing.aborted) throw stopped();
    if (this.#usable) return this.#usable;
    this.#opening ??= this.#open(joinSignals(signal, this.closing)).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  get facts(): PlaceFacts {
    return this.#facts;
  }

  /** What is true of a place that has just been opened. */
  protected factsOf({
    languages,
    runner,
  }: Place): PlaceFacts & { readonly capabilities: Partial<ExecutorCapabilities> } {
    const names = [...languages.found.keys()];
    return {
      capabilities: {
        ...commandLineCapabilities(names),
        hostFunctions: runner.openCalls ? hostFunctionLanguages(names) : [],
        ...(languages.packages && { packages: languages.packages }),
      },
      missing: languages.missing,
      workspacePath: this.workspacePath,
    };
  }

  get files(): BackendFiles {
    if (this.#current) return this.#current.files;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  async diskUsage(atMost: number): Promise<number> {
    const { runner, files } = this.#current ?? {};
    return (await (runner?.measure?.(atMost) ?? files?.diskUsage?.(atMost))) ?? 0;
  }

  /** The session's own directory, as programs see it. */
  protected get directory(): string {
    return this.#settings.directory;
  }

  functionPlaces(): SupervisedFunctionPlaces {
    const { directory, workspacePath } = this;
    return {
      python: `${directory}/functions`,
      commands: `${directory}/bin`,
      pythonPackages: `${directory}/packages`,
      javascript: workspacePath,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { runner } = await this.ready(this.closing);
    if (!runner.openCalls) {
      throw new FunctionSetupError("Host functions need Python where the code runs, and there is none", {
        remedy: "Use an image that has Python 3.8 or later, or leave the host functions out.",
      });
    }
    this.claimFunctionsPackage();
    return runner.openCalls(accept);
  }

  /** @param interpret - runs the block, with its variables, instead of a new process. */
  async run(block: BlockRun, sink: Sink, interpret?: InterpretBlock): Promise<BlockOutcome> {
    const place = this.#usable ?? (await this.ready(sink.signal));
    const language = place.languages.found.get(block.language);
    if (!language) {
      throw new InvalidInputError(`No command is configured for ${block.language}`, {
        remedy: "Restart the executor.",
      });
    }
    const { stdin, filename } = block;
    const env = this.#variables(place, block);
    const given = { env, ...(stdin !== undefined && { stdin }) };
    const needsFile = interpret === undefined || filename !== undefined;
    const withoutFile = (error: unknown): Promise<ProgramEnd> => {
      const { language: name, code } = block;
      const canMakeRoom = needsFile && filename === undefined && isDiskFull(error);
      const inline = canMakeRoom ? commandWithoutFile(name, language.command, code) : undefined;
      if (!inline) throw error;
      return place.runner.run({ ...given, argv: this.#wrap(inline) }, sink);
    };
    let file: BlockFile | undefined;
    try {
      file = needsFile ? await this.#writeBlock(place, block, language.extension) : undefined;
    } catch (error) {
      return this.#follow(place, sink, withoutFile(error));
    }
    if (interpret) return this.#follow(place, sink, interpret(env), file);
    const argv = this.#wrap([...language.command, file?.path ?? ""]);
    const running = place.runner.run({ ...given, argv, ...(file?.sent && { file: file.sent }) }, sink);
    return this.#follow(place, sink, file?.sent ? running.catch(withoutFile) : running, file);
  }

  #writeBlock(place: Place, block: BlockRun, extension: string): BlockFile | Promise<BlockFile> {
    const { language, code, filename } = block;
    const isElsewhere = filename === undefined && !this.#settings.keepFiles && runsFromAnywhere(language);
    // Only a supervisor creates files there.
    if (!isElsewhere || !place.runner.openCalls) return place.writeBlock(block, extension);
    const file = `${this.directory}/block-${randomUUID()}.${extension}`;
    return { path: file, sent: { name: file, content: blockSource(language, code) } };
  }

  async runProgram(program: ProgramRun, sink: Sink): Promise<BlockOutcome> {
    const place = await this.ready(sink.signal);
    return this.#follow(place, sink, place.runner.run({ ...program, env: this.#variables(place, program) }, sink));
  }

  /** Waits for a program's end and cleans up after it, however it ends. */
  async #follow(place: Place, sink: Sink, running: Promise<ProgramEnd>, file?: BlockFile): Promise<BlockOutcome> {
    const refusals = this.#settings.network?.collect();
    let network: readonly NetworkDecision[] | undefined;
    let end: ProgramEnd;
    let settledAt: number;
    let problem: string | undefined;
    try {
      end = await running;
    } finally {
      // Cleaning up does not count towards the program's time.
      settledAt = performance.now();
      network = refusals?.();
      problem = await place.settle(file);
    }
    const sentences = [
      end.outOfMemory && this.#settings.memorySentence,
      end.exitCode === busError && busErrorSentence,
      problem,
    ];
    for (const data of sentences) if (typeof data === "string") void sink.write({ type: "stderr", data });
    const codeFile = file?.onHost;
    const endedAt = end.endedAt ?? settledAt;
    return { ...outcomeOf(end), endedAt, ...(network && { network }), ...(codeFile !== undefined && { codeFile }) };
  }

  /**
   * The current place, and the interpreter to start there for a stateful session.
   *
   * @throws BackendUnavailableError if it cannot run Python.
   */
  async interpreterPlace(signal: AbortSignal): Promise<StatefulPlace> {
    const place = await this.ready(signal);
    const { env, warm } = this.#settings;
    const { commands } = this.functionPlaces();
    const program = interpreterToStart(place.languages, { env: this.#variables(place, { env }), commands, warm });
    if (!canInterpret(place.runner)) {
      throw new BackendUnavailableError("A stateful session needs a Python that can also run the supervisor", {
        remedy: "Use an image that has Python 3.8 or later, or leave `stateful` out.",
      });
    }
    return { supervisor: place.runner, program: { ...program, command: this.#wrap(program.command) } };
  }

  get workspacePath(): string {
    return this.#settings.workspacePath;
  }

  /** The current place, if it can be used. */
  get #usable(): Place | undefined {
    return this.#current?.lost === undefined && this.#current !== this.#unfit ? this.#current : undefined;
  }

  repair(signal: AbortSignal): Promise<void> | undefined {
    if (this.#usable) return undefined;
    return this.ready(signal).then(() => {});
  }

  async reset(signal: AbortSignal): Promise<void> {
    const place = await this.ready(signal);
    try {
      await place.runner.reset();
    } catch {
      // A new place has no processes either.
      this.#unfit = place;
      await place.end().catch(() => {});
      await this.ready(signal);
    }
  }

  /** Waits only briefly for programs, which `close` ends. Override this if closing does not end the place. */
  stopping(): void {
    const runner = this.#current?.runner;
    this.#stopping ??= setTimeout(() => runner?.fail(stopped()), stoppingMs);
  }

  async close(): Promise<void> {
    clearTimeout(this.#stopping);
    this.#closing.abort(stopped());
    await this.#opening?.catch(() => {});
    const current = this.#current;
    this.#current = undefined;
    await this.closeWith(current);
  }

  async #open(signal: AbortSignal): Promise<Place> {
    const old = this.#current;
    const place = await this.openPlace(old, signal);
    this.#current = place;
    this.#facts = this.factsOf(place);
    this.#keepWarm(place);
    place.whenLost(this.#settings.onLost);
    if (old) this.#settings.onReplaced();
    return place;
  }

  #keepWarm(place: Place): void {
    const { wrap, warm = false, stateful } = this.#settings;
    // Hostile code in an interpreter that lives on could attack waiting ones, so a stateful session has none.
    if (wrap || warm === false || stateful) return;
    place.runner.keepWarm?.(warmPrograms(place.languages, warm, this.#variables(place, this.#settings)));
  }

  #wrap(command: readonly string[]): readonly string[] {
    return this.#settings.wrap?.(command) ?? command;
  }

  #variables(place: Place, { env, hostCalls }: Pick<BlockRun, "env" | "hostCalls">): Record<string, string> {
    const variables = { ...blockEnvironment, ...(place.variables?.(env) ?? env) };
    const hasFunctions = this.#settings.functions.length > 0 || hostCalls !== undefined;
    return {
      ...variables,
      ...(hasFunctions ? functionVariables(this.functionPlaces(), hostCalls, variables, ":") : {}),
      [sessionMark]: this.#settings.id,
    };
  }
}

function canInterpret(runner: PlaceRunner): runner is PlaceRunner & StatefulPlace["supervisor"] {
  return Boolean(runner.openInterpreter && runner.forkInterpreter && runner.ping);
}

function stopped(): ExecutorStoppedError {
  return new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
}

/** The outcome of a block that ended like this. */
function outcomeOf({ exitCode, stateLost, truncated }: ProgramEnd): BlockOutcome {
  return { exitCode, ...(stateLost === true && { stateLost }), ...(truncated === true && { truncated }) };
}
