import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  BackendUnavailableError,
  ExecutorStoppedError,
  type ExecutorUsage,
  FunctionSetupError,
  InvalidInputError,
  type NetworkDecision,
} from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
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
import { type Place, type PlaceEnd, type PlaceFacts, PlaceGone } from "../place.ts";
import type { BlockOutcome, BlockRun, LeftProgram, ProgramRun } from "../run/block-run.ts";
import type { Sink } from "../run/sink.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import { isDiskFull } from "../workspace/workspace-errors.ts";
import { programFigures } from "./blocks/program-usage.ts";
import type { ProgramEnd } from "./blocks/supervised-program.ts";
import type { BlockFile, Connection, PlannedFile, ProgramRunner } from "./connector.ts";
import { watchDirectory } from "./files/watch-directory.ts";
import type { InterpreterProgram } from "./interpreters/interpreters.ts";
import { SupervisedPlaceRuns } from "./runs/supervised-place-runs.ts";
import type { RunStep } from "./runs/supervised-runs.ts";
import type { SupervisedSettings } from "./supervised-backend.ts";
import { type NetworkTraffic, trafficFigures } from "./tunnels/session-network.ts";
import { interpreterToStart, warmPrograms } from "./warm/interpreter-options.ts";

/** How long to wait for the supervisor's reports after a stop in milliseconds, since code may have stopped it. */
const stoppingMs = 1000;

/** The exit code of a program that SIGBUS ended. */
const busError = 135;
const busErrorSentence =
  "\nThe block ended by SIGBUS. That happens to programs that use more shared memory than there is (df -h /dev/shm): use less of it, or raise the memory limit.\n";

/** The variable that marks all programs of an executor; its value is the executor's id. */
export const sessionMark = "FENCED_SESSION";

/** Where a place stores its function modules. */
export type SupervisedFunctionPlaces = Omit<FunctionPlaces, "owner"> &
  Required<Pick<FunctionPlaces, "python" | "commands">>;

/** A block of a run that goes on without this program. */
export interface PlannedStep {
  readonly step: RunStep;
  /** The absolute path on this host of the block's file. */
  readonly codeFile?: string | undefined;
}

/** Runs a block in an interpreter that lives on instead of in a new process. */
export type InterpretBlock = (env: Readonly<Record<string, string>>) => Promise<ProgramEnd>;

/** A place whose programs are run by a supervisor. */
export class SupervisedPlace implements Place {
  readonly facts: PlaceFacts;
  readonly lost: Promise<Error>;
  readonly #connection: Connection;
  readonly #settings: SupervisedSettings;
  /** Variables that tell programs where the proxy is, if there is one. */
  readonly #networkVariables: Readonly<Record<string, string>>;
  #stopping: NodeJS.Timeout | undefined;

  constructor(
    connection: Connection,
    settings: SupervisedSettings,
    networkVariables: Readonly<Record<string, string>>,
  ) {
    this.#connection = connection;
    this.#settings = settings;
    this.#networkVariables = networkVariables;
    this.lost = connection.lost;
    const { languages, runner, workspace, ports, session } = connection;
    const names = [...languages.found.keys()];
    this.facts = {
      capabilities: {
        ...commandLineCapabilities(names),
        hostFunctions: runner.openCalls ? hostFunctionLanguages(names) : [],
        ...(languages.packages && { packages: languages.packages }),
        terminals: runner.leftPrograms !== undefined,
        addresses: runner.connect !== undefined,
        usage: [
          ...(runner.usage ? programFigures : []),
          ...(settings.network && connection.hasNetwork !== true ? trafficFigures : []),
        ],
        ...(session && { keepAlive: true, keepsRuns: keepsRuns(connection) }),
        ...connection.capabilities,
      },
      missing: languages.missing,
      workspacePath: workspace.path,
      filesStay: workspace.filesStay,
      ...(ports && { ports }),
      ...(session && { session }),
      ...(connection.isLeft === true && { isLeft: true }),
    };
    this.#keepWarm();
  }

  get files(): BackendFiles {
    return this.#connection.workspace.files;
  }

  get watch(): Place["watch"] {
    const { runner, workspace } = this.#connection;
    const { watcher: python } = runner;
    if (python === undefined) return undefined;
    const place = { workspace: workspace.path, python, supervisor: () => Promise.resolve(runner) };
    return (request) => watchDirectory(place, request);
  }

  async diskUsage(atMost: number): Promise<number> {
    const { runner } = this.#connection;
    return (await (runner.measure?.(atMost) ?? this.files.diskUsage?.(atMost))) ?? 0;
  }

  async usage(): Promise<Omit<ExecutorUsage, "diskBytes">> {
    return (await this.#connection.runner.usage?.()) ?? {};
  }

  functionPlaces(): SupervisedFunctionPlaces {
    const { directory, workspace } = this.#connection;
    return {
      python: `${directory}/functions`,
      commands: `${directory}/bin`,
      ...(this.#settings.installsApart && { pythonPackages: `${directory}/packages` }),
      javascript: workspace.path,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { runner, workspace } = this.#connection;
    if (!runner.openCalls) {
      throw new FunctionSetupError("Host functions need Python where the code runs, and there is none", {
        remedy: "Use an image that has Python 3.8 or later, or leave the host functions out.",
      });
    }
    workspace.hideFunctionsPackage?.();
    return runner.openCalls(accept);
  }

  /** @param interpret - runs the block, with its variables, instead of a new process. */
  async run(block: BlockRun, sink: Sink, interpret?: InterpretBlock): Promise<BlockOutcome> {
    await this.#assertNotLosing(sink.signal);
    const { languages, runner } = this.#connection;
    const language = languages.found.get(block.language);
    if (!language) throw noCommand(block.language);
    const { stdin, filename } = block;
    const env = this.#variables(block);
    const given = { env, ...(stdin !== undefined && { stdin }) };
    const needsFile = interpret === undefined || filename !== undefined;
    const withoutFile = (error: unknown): Promise<ProgramEnd> => {
      const { language: name, code } = block;
      const canMakeRoom = needsFile && filename === undefined && isDiskFull(error);
      const inline = canMakeRoom ? commandWithoutFile(name, language.command, code) : undefined;
      if (!inline) throw error;
      return runner.run({ ...given, argv: this.#wrap(inline) }, sink);
    };
    let file: BlockFile | undefined;
    try {
      file = needsFile ? await this.#writeBlock(block, language.extension) : undefined;
    } catch (error) {
      return this.#follow(sink, withoutFile(error));
    }
    if (interpret) return this.#follow(sink, interpret(env), file);
    const argv = this.#wrap([...language.command, file?.path ?? ""]);
    const running = runner.run({ ...given, argv, ...(file?.sent && { file: file.sent }) }, sink);
    return this.#follow(sink, file?.sent ? running.catch(withoutFile) : running, file);
  }

  get runs(): SupervisedPlaceRuns | undefined {
    const { runner } = this.#connection;
    const { runs } = runner;
    if (!runs || this.facts.capabilities?.keepsRuns !== true) return undefined;
    const { memorySentence, network } = this.#settings;
    return new SupervisedPlaceRuns(runs, {
      memorySentence,
      busErrorSentence,
      plan: (block) => this.planBlock(block),
      measure: runner.measure?.bind(runner),
      watchRefusals: network && ((refused, wasRunning) => network.watchRefusals(refused, wasRunning)),
    });
  }

  /**
   * Plans a block of a run that goes on without this program.
   *
   * @param interpret - returns the frames that run it, with its variables, instead of a new process.
   */
  planBlock(block: BlockRun, interpret?: (env: Readonly<Record<string, string>>) => Buffer): PlannedStep {
    const { languages, runner } = this.#connection;
    const language = languages.found.get(block.language);
    if (!language || !runner.framesOf) throw noCommand(block.language);
    const { stdin, filename, code } = block;
    const env = this.#variables(block);
    const given = { env, ...(stdin !== undefined && { stdin }) };
    const planned = interpret && filename === undefined ? undefined : this.#planFile(block, language.extension);
    const file = planned?.file;
    const write = planned?.write && runner.framesOf(planned.write);
    const own = { ...(write && { write }) };
    if (interpret) return { step: { ...own, main: interpret(env) }, codeFile: file?.onHost };
    const argv = this.#wrap([...language.command, file?.path ?? ""]);
    const main = runner.framesOf({ ...given, argv, ...(file?.sent && { file: file.sent }) });
    const inline = filename === undefined ? commandWithoutFile(block.language, language.command, code) : undefined;
    const spare = inline ? { inline: runner.framesOf({ ...given, argv: this.#wrap(inline) }) } : {};
    return { step: { ...own, main, ...spare }, codeFile: file?.onHost };
  }

  async runProgram(program: ProgramRun, sink: Sink): Promise<BlockOutcome> {
    const { runner } = this.#connection;
    await this.#assertNotLosing(sink.signal);
    const { argv, stdin, label, pty, started } = program;
    const env = this.#variables(program);
    // Something that is not a supervisor does not tell.
    if (!runner.leftPrograms) started({});
    const alongside = { label, started, ...(pty && { pty }) };
    const running = runner.run({ argv, env, ...(stdin !== undefined && { stdin }), alongside }, sink);
    return this.#follow(sink, running);
  }

  connectPort(port: number): Duplex {
    const { runner } = this.#connection;
    if (runner.connect) return runner.connect(port);
    throw new InvalidInputError("Ports of programs cannot be reached without Python where they run", {
      remedy: "Use an image that has Python 3.8 or later.",
    });
  }

  async leftPrograms(): Promise<readonly LeftProgram[]> {
    const left = this.#connection.isLeft === true ? await this.#connection.runner.leftPrograms?.() : undefined;
    return (left ?? []).map(({ follow, ...program }) => ({
      ...program,
      follow: (sink, stdin) => this.#follow(sink, follow(sink, stdin)),
    }));
  }

  /**
   * What starts interpreters that live on from block to block, and the one to start for a stateful session.
   *
   * @throws BackendUnavailableError if the place cannot run Python.
   */
  interpreters(): { readonly supervisor: InterpreterRunner; readonly program: InterpreterProgram } {
    const { languages, runner } = this.#connection;
    const { env, warm } = this.#settings;
    const { commands } = this.functionPlaces();
    const program = interpreterToStart(languages, { env: this.#variables({ env }), commands, warm });
    if (!canInterpret(runner)) {
      throw new BackendUnavailableError("A stateful session needs a Python that can also run the supervisor", {
        remedy: "Use an image that has Python 3.8 or later, or leave `stateful` out.",
      });
    }
    return { supervisor: runner, program: { ...program, command: this.#wrap(program.command) } };
  }

  async reset(): Promise<void> {
    try {
      await this.#connection.runner.reset();
    } catch (cause) {
      // A new place has no processes either.
      throw new PlaceGone("Its processes could not be ended", { cause });
    }
  }

  /** Waits only briefly for programs, which `end` ends, and not at all for those that go on. */
  stopping(isDetached: boolean): void {
    if (isDetached) this.#connection.runner.fail(stopped());
    if (isDetached || this.#connection.outlivesSession === true) return;
    this.#stopping ??= setTimeout(() => this.#connection.runner.fail(stopped()), stoppingMs);
  }

  async end(end: PlaceEnd): Promise<void> {
    clearTimeout(this.#stopping);
    try {
      await this.#connection.end(end);
    } finally {
      // A fork of a stateful session may still use it.
      this.#connection.runner.fail(stopped());
    }
  }

  /** What was not sent can go to another place, even if it is not known yet why this one is lost. */
  async #assertNotLosing(signal: AbortSignal): Promise<void> {
    if (this.#connection.isLosing?.() !== true) return;
    const cause = await untilAborted(this.lost, signal);
    throw new PlaceGone(cause.message, { cause });
  }

  #writeBlock(block: BlockRun, extension: string): BlockFile | Promise<BlockFile> {
    return this.#fileElsewhere(block, extension) ?? this.#connection.workspace.writeBlock(block, extension);
  }

  #planFile(block: BlockRun, extension: string): PlannedFile | undefined {
    const file = this.#fileElsewhere(block, extension);
    return file ? { file } : this.#connection.workspace.planBlock?.(block, extension);
  }

  /** A block's file in the session's own directory, if it need not be in the work directory. */
  #fileElsewhere({ language, code, filename }: BlockRun, extension: string): BlockFile | undefined {
    const { runner, directory } = this.#connection;
    const isElsewhere = filename === undefined && !this.#settings.keepFiles && runsFromAnywhere(language);
    // Only a supervisor creates files there.
    if (!isElsewhere || !runner.openCalls) return undefined;
    const file = `${directory}/block-${randomUUID()}.${extension}`;
    return { path: file, sent: { name: file, content: blockSource(language, code) } };
  }

  /** Waits for a program's end and cleans up after it, however it ends. */
  async #follow(sink: Sink, running: Promise<ProgramEnd>, file?: BlockFile): Promise<BlockOutcome> {
    const refusals = this.#settings.network?.collect();
    const reaches = this.#settings.network?.collectReached();
    const counts = this.#connection.hasNetwork === true ? undefined : this.#settings.network?.countTraffic();
    let traffic: NetworkTraffic | undefined;
    let reached: readonly NetworkDecision[] | undefined;
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
      reached = reaches?.();
      traffic = counts?.();
      problem = await this.#connection.workspace.settle(file);
    }
    const { exitCode, outOfMemory, stateLost, truncated, usage } = end;
    if (outOfMemory) void sink.write({ type: "stderr", data: this.#settings.memorySentence });
    if (exitCode === busError) void sink.write({ type: "stderr", data: busErrorSentence });
    if (problem !== undefined) void sink.write({ type: "stderr", data: problem });
    const codeFile = file?.onHost;
    return {
      exitCode,
      endedAt: end.endedAt ?? settledAt,
      ...(stateLost === true && { stateLost }),
      ...(truncated === true && { truncated }),
      ...(network && { network }),
      ...(reached && { reached }),
      usage: { ...usage, ...traffic },
      ...(codeFile !== undefined && { codeFile }),
    };
  }

  #keepWarm(): void {
    const { wrap, warm = false, stateful } = this.#settings;
    const { runner, languages } = this.#connection;
    // Hostile code in an interpreter that lives on could attack waiting ones, so a stateful session has none.
    if (wrap || warm === false || stateful) return;
    runner.keepWarm?.(warmPrograms(languages, warm, this.#variables(this.#settings)));
  }

  #wrap(command: readonly string[]): readonly string[] {
    return this.#settings.wrap?.(command) ?? command;
  }

  #variables({ env, hostCalls }: Pick<BlockRun, "env" | "hostCalls">): Record<string, string> {
    const given = { ...this.#networkVariables, ...env };
    const variables = { ...blockEnvironment, ...(this.#connection.variables?.(given) ?? given) };
    const hasFunctions = this.#settings.functions.length > 0 || hostCalls !== undefined;
    return {
      ...variables,
      ...(hasFunctions ? functionVariables(this.functionPlaces(), hostCalls, variables, ":") : {}),
      [sessionMark]: this.#settings.id,
    };
  }
}

function keepsRuns({ runner, workspace }: Connection): boolean {
  return runner.runs !== undefined && workspace.planBlock !== undefined;
}

function noCommand(language: string): InvalidInputError {
  return new InvalidInputError(`No command is configured for ${language}`, { remedy: "Restart the executor." });
}

function stopped(): ExecutorStoppedError {
  return new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
}

/** What opens and forks interpreters. */
export type InterpreterRunner = Required<
  Pick<ProgramRunner, "openInterpreter" | "takeInterpreter" | "forkInterpreter" | "ping">
>;

function canInterpret(runner: ProgramRunner): runner is ProgramRunner & InterpreterRunner {
  return Boolean(runner.openInterpreter && runner.takeInterpreter && runner.forkInterpreter && runner.ping);
}
