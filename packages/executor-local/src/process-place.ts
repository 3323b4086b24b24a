import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { FunctionSetupError, InvalidInputError, type FunctionWithRequirements, type ProcessSignal } from "@fenced/core";
import {
  blockEnvironment,
  commandLineCapabilities,
  commandWithoutFile,
  functionVariables,
  HeldBytes,
  hostEnvironment,
  hostFunctionLanguages,
  isDiskFull,
  listenForCalls,
  programsOf,
  removeOwnFile,
  type BlockOutcome,
  type BlockRun,
  type DirectoryFiles,
  type FunctionPlaces,
  type LanguageCommand,
  type Place,
  type PlaceFacts,
  type ProgramRun,
  runsFromAnywhere,
  type Sink,
} from "@fenced/executor-kit";
import { type FilesRunner, watchDirectory } from "@fenced/executor-kit/supervisor";
import { HostGround } from "./host-ground.ts";
import { findLanguages, type FoundLanguages } from "./languages/find-languages.ts";
import { PipeSupply } from "./processes/pipes.ts";
import { runProcess } from "./processes/run-process.ts";
import { WaitingShells } from "./processes/waiting-shells.ts";
import { prepareSeatbelt, type Seatbelt, type SeatbeltWishes } from "./sandbox/prepare-seatbelt.ts";
import { inVirtualEnv, type VirtualEnv } from "./virtual-env.ts";

/** The settings of a session. */
export interface ProcessSettings {
  /** The executor's id. */
  readonly id: string;
  /** Absolute path; `undefined` for a directory that the session creates. */
  readonly workDirectory: string | undefined;
  readonly virtualEnv: VirtualEnv | undefined;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages with a command from the user. */
  readonly givenLanguages: ReadonlySet<string>;
  /** The executor's environment variables for blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of this program's environment variables that blocks also get. */
  readonly inheritEnv: readonly string[];
  readonly cleanupTempFiles: boolean;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  /** The macOS sandbox that blocks run in; `undefined` for none. */
  readonly seatbelt?: SeatbeltWishes;
}

/** The resources of a session. */
interface SessionParts {
  readonly ground: HostGround;
  readonly pipes: PipeSupply;
  readonly shells: WaitingShells;
  readonly env: Readonly<Record<string, string>>;
  readonly languages: FoundLanguages;
  readonly seatbelt: Seatbelt | undefined;
}

/** Directories of this host in which each block is a process of this program. It cannot be lost. */
export class ProcessPlace implements Place {
  readonly facts: PlaceFacts;
  readonly #settings: ProcessSettings;
  readonly #parts: SessionParts;
  /** The main processes of all blocks so far. */
  readonly #started = new Set<number>();
  /** Pipes to which processes left running by finished blocks still write. */
  readonly #leftOpen = new Set<net.Socket>();
  readonly #held: HeldBytes;
  /** The socket over which programs call host functions. */
  #calls: Awaited<ReturnType<typeof listenForCalls>> | undefined;

  private constructor(settings: ProcessSettings, parts: SessionParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#held = new HeldBytes({ mark: parts.ground.mark }, parts.ground.directories.workDirectory);
    const languages = [...parts.languages.found.keys()];
    this.facts = {
      capabilities: {
        ...commandLineCapabilities(languages),
        // The profile of the macOS sandbox blocks all sockets of this host.
        hostFunctions: parts.seatbelt ? [] : hostFunctionLanguages(languages),
        addresses: parts.seatbelt === undefined,
        usage: parts.ground.group ? ["processorMs"] : [],
      },
      missing: parts.languages.missing,
      workspacePath: parts.ground.directories.workDirectory,
      filesStay: true,
    };
  }

  /** @throws BackendUnavailableError if the work directory cannot be created. */
  static async open(settings: ProcessSettings): Promise<ProcessPlace> {
    const ground = await HostGround.open(settings);
    const { directories } = ground;
    const pipes = new PipeSupply(directories.sessionDirectory);
    const given = { ...hostEnvironment(settings.inheritEnv), ...blockEnvironment, ...settings.env };
    try {
      const { seatbelt: wishes, virtualEnv, table } = settings;
      const programs = { programs: programsOf(table), searchPath: given["PATH"] ?? "" };
      const seatbelt = wishes && (await prepareSeatbelt({ ...wishes, virtualEnv }, programs, directories));
      const env = { ...given, ...seatbelt?.env };
      const search = {
        env: virtualEnv ? inVirtualEnv(env, virtualEnv) : env,
        cwd: directories.workDirectory,
        given: settings.givenLanguages,
        ...(seatbelt ? { wrap: seatbelt.wrap } : {}),
      };
      const [languages] = await Promise.all([findLanguages(table, search), pipes.fill()]);
      const variables = { ...search.env, [ground.mark.name]: ground.mark.value };
      const shells = new WaitingShells(ground.group, pipes, directories.sessionDirectory, variables);
      shells.prepare();
      return new ProcessPlace(settings, { ground, pipes, shells, env, languages, seatbelt });
    } catch (error) {
      await ground.release();
      throw error;
    }
  }

  functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { sessionDirectory, workDirectory } = this.#parts.ground.directories;
    const packages = path.join(sessionDirectory, "packages");
    return {
      python: path.join(sessionDirectory, "functions"),
      commands: path.join(sessionDirectory, "bin"),
      // Install packages only into a dedicated environment, never into the host's own Python.
      ...(this.#settings.virtualEnv ? {} : { pythonPackages: packages }),
      javascript: workDirectory,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { ground, seatbelt } = this.#parts;
    if (seatbelt) {
      throw new FunctionSetupError("Code in the macOS sandbox cannot call host functions", {
        remedy: "Leave them out, or use @fenced/executor-docker.",
      });
    }
    ground.directories.claimFunctionsPackage();
    this.#calls ??= await listenForCalls(ground.directories.sessionDirectory, accept);
    return this.#calls.address;
  }

  async run(run: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const { ground, languages, seatbelt } = this.#parts;
    const language = languages.found.get(run.language);
    if (!language) {
      throw new InvalidInputError(`No command is configured for ${run.language}`, { remedy: "Restart the executor." });
    }
    let codeFile: string;
    try {
      // The sandbox of macOS shows no more of the session's directory than code needs.
      const elsewhere = this.#settings.cleanupTempFiles && !seatbelt && runsFromAnywhere(run.language);
      codeFile = await ground.directories.writeBlock(run, language.extension, elsewhere);
    } catch (error) {
      const canMakeRoom = run.filename === undefined && isDiskFull(error);
      const inline = canMakeRoom ? commandWithoutFile(run.language, language.command, run.code) : undefined;
      if (!inline) throw error;
      return this.#run(inline, run, sink);
    }
    const temporary = run.filename === undefined && this.#settings.cleanupTempFiles;
    try {
      return { ...(await this.#run([...language.command, codeFile], run, sink)), codeFile };
    } finally {
      // The block may have replaced the file or locked the directory; its result counts nevertheless.
      if (temporary) await removeOwnFile(codeFile);
    }
  }

  /** Programs here listen on this host's own loopback. */
  connectPort(port: number): Duplex {
    return net.connect({ port, host: "localhost", allowHalfOpen: true });
  }

  runProgram({ argv, started, ...program }: ProgramRun, sink: Sink): Promise<BlockOutcome> {
    return this.#run(argv, program, sink, (pid) => started({ pid, signal: (name) => sendSignal(pid, name) }));
  }

  get files(): DirectoryFiles {
    return this.#parts.ground.directories.files();
  }

  /** Needs inotify and Python. */
  get watch(): Place["watch"] {
    const { languages, ground } = this.#parts;
    const [python] = languages.found.get("python")?.command ?? [];
    const isKnown = python !== undefined && !this.#settings.givenLanguages.has("python");
    if (process.platform !== "linux" || !isKnown) return undefined;
    const runner: FilesRunner = {
      run: ({ argv: [, ...words], env }, sink) => this.#run([python, ...words], { env }, sink),
    };
    const place = { workspace: ground.directories.workDirectory, python, supervisor: () => Promise.resolve(runner) };
    return (request) => watchDirectory(place, request);
  }

  async diskUsage(atMost: number): Promise<number> {
    const bytes = await this.files.diskUsage(atMost);
    return bytes > atMost ? bytes : bytes + (await this.#held.count());
  }

  async reset(): Promise<void> {
    // First, because a shell that is still being made may enter the group after everything in it was killed.
    await this.#parts.shells.dismiss();
    await this.#parts.ground.endProcesses({ endedRoots: this.#started });
    this.#started.clear();
    for (const socket of this.#leftOpen) socket.destroy();
  }

  async end(): Promise<void> {
    const { pipes, ground } = this.#parts;
    await this.reset();
    this.#calls?.server.close();
    try {
      await pipes.settle();
    } finally {
      await ground.release();
    }
  }

  #run(
    command: readonly [string, ...string[]],
    run: Pick<ProgramRun, "env" | "stdin"> & Pick<BlockRun, "hostCalls">,
    sink: Sink,
    started?: (pid: number) => void,
  ): Promise<BlockOutcome> {
    const { ground, pipes, shells, env, seatbelt } = this.#parts;
    const { directories, group, mark } = ground;
    const { functions, virtualEnv } = this.#settings;
    const given = { ...env, ...run.env };
    const variables = virtualEnv ? inVirtualEnv(given, virtualEnv) : given;
    const hasFunctions = functions.length > 0 || run.hostCalls !== undefined;
    const spec = {
      command: seatbelt?.wrap(command) ?? command,
      cwd: directories.workDirectory,
      env: {
        ...variables,
        ...(hasFunctions ? functionVariables(this.functionPlaces(), run.hostCalls, variables) : {}),
        [mark.name]: mark.value,
      },
      ...(run.stdin === undefined ? {} : { stdin: run.stdin }),
      scratch: directories.sessionDirectory,
      onStart: (pid: number) => {
        this.#started.add(pid);
        started?.(pid);
      },
      group,
      shells,
      leftOpen: this.#leftOpen,
    };
    return runProcess(spec, pipes, sink);
  }
}

/** Sends a signal to a program that runs, which leads its own process group. */
function sendSignal(pid: number, name: ProcessSignal): void {
  try {
    process.kill(-pid, name);
  } catch {
    // It has just ended.
  }
}
