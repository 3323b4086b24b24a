import { randomUUID } from "node:crypto";
import type net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import {
  FunctionSetupError,
  InvalidInputError,
  type ExecutorCapabilities,
  type FunctionWithRequirements,
} from "@fenced/core";
import {
  blockEnvironment,
  commandLineCapabilities,
  ControlGroup,
  functionVariables,
  hostEnvironment,
  hostFunctionLanguages,
  killProcesses,
  Leash,
  listenForCalls,
  programsOf,
  removeOwnFile,
  SessionDirectories,
  type BackendSession,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type DirectoryFiles,
  type FunctionPlaces,
  type LanguageCommand,
  type ProgramRun,
} from "@fenced/executor-kit";
import { findLanguages, type FoundLanguages } from "./languages/find-languages.ts";
import { PipeSupply } from "./processes/pipes.ts";
import { runProcess } from "./processes/run-process.ts";
import { prepareSeatbelt, type Seatbelt, type SeatbeltWishes } from "./sandbox/prepare-seatbelt.ts";
import type { VirtualEnv } from "./virtual-env.ts";
import { writeBlock } from "./write-block.ts";

/** The settings of a session. */
export interface LocalSessionSettings {
  /** The executor's id. */
  readonly id: string;
  /** Absolute path; `undefined` for a directory that the session creates. */
  readonly workDirectory: string | undefined;
  readonly virtualEnv: VirtualEnv | undefined;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages whose command the user gave. */
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
  readonly directories: SessionDirectories;
  readonly pipes: PipeSupply;
  readonly leash: Leash;
  /** Absent if this process may not create one. */
  readonly group: ControlGroup | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly languages: FoundLanguages;
  readonly seatbelt: Seatbelt | undefined;
}

/** The directories, pipes and processes of a started executor. */
export class LocalSession implements BackendSession {
  readonly capabilities: Partial<ExecutorCapabilities>;
  readonly missing: ReadonlyMap<string, string>;
  readonly files: DirectoryFiles;
  readonly #settings: LocalSessionSettings;
  readonly #parts: SessionParts;
  /** The main processes of all blocks so far. */
  readonly #started = new Set<number>();
  /** Pipes that processes left behind by finished blocks still write to. */
  readonly #leftOpen = new Set<net.Socket>();
  /** The socket over which programs call host functions. */
  #calls: Awaited<ReturnType<typeof listenForCalls>> | undefined;

  private constructor(settings: LocalSessionSettings, parts: SessionParts) {
    this.#settings = settings;
    this.#parts = parts;
    const languages = [...parts.languages.found.keys()];
    this.capabilities = {
      ...commandLineCapabilities(languages),
      // The profile of the macOS sandbox blocks all sockets of this host.
      hostFunctions: parts.seatbelt ? [] : hostFunctionLanguages(languages),
    };
    this.missing = parts.languages.missing;
    this.files = parts.directories.files();
  }

  /** @throws BackendUnavailableError if the work directory cannot be created. */
  static async open(settings: LocalSessionSettings): Promise<LocalSession> {
    const directories = await SessionDirectories.plan(settings);
    const planned = await ControlGroup.plan(`fenced-${randomUUID()}`);
    // Before there is anything to remove, since this program may die at any moment.
    const leash = new Leash({
      mark: markOf(settings),
      ...(planned ? { controlGroup: planned } : {}),
      ...directories.leashed,
    });
    const pipes = new PipeSupply(directories.sessionDirectory);
    const given = { ...hostEnvironment(settings.inheritEnv), ...blockEnvironment, ...settings.env };
    try {
      await directories.make();
      const seatbelt = await makeSeatbelt(settings, directories, given["PATH"]);
      const env = { ...given, ...seatbelt?.env };
      const group = (await planned?.make()) === true ? planned : undefined;
      const search = {
        env: inVirtualEnv(env, settings.virtualEnv),
        cwd: directories.workDirectory,
        given: settings.givenLanguages,
        ...(seatbelt ? { wrap: seatbelt.wrap } : {}),
      };
      const [languages] = await Promise.all([findLanguages(settings.table, search), pipes.fill()]);
      return new LocalSession(settings, { directories, leash, group, pipes, env, languages, seatbelt });
    } catch (error) {
      await planned?.remove();
      await directories.remove().catch(() => {});
      await leash.release();
      throw error;
    }
  }

  functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { sessionDirectory, workDirectory } = this.#parts.directories;
    const packages = path.join(sessionDirectory, "packages");
    return {
      python: path.join(sessionDirectory, "functions"),
      commands: path.join(sessionDirectory, "bin"),
      // Install packages only into an environment made for them, never into the host's own Python.
      ...(this.#settings.virtualEnv ? {} : { pythonPackages: packages }),
      javascript: workDirectory,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { directories, seatbelt } = this.#parts;
    if (seatbelt) {
      throw new FunctionSetupError("Code in the macOS sandbox cannot call host functions", {
        remedy: "Leave them out, or use @fenced/executor-docker.",
      });
    }
    directories.claimFunctionsPackage();
    this.#calls ??= await listenForCalls(directories.sessionDirectory, accept);
    return this.#calls.address;
  }

  async *run(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { directories, languages } = this.#parts;
    const language = languages.found.get(run.language);
    if (!language) throw new InvalidInputError(`No command runs ${run.language}`, { remedy: "Restart the executor." });
    const codeFile = await writeBlock(directories, this.files, run, language.extension);
    const temporary = run.filename === undefined && this.#settings.cleanupTempFiles;
    try {
      return { ...(yield* this.#run([...language.command, codeFile], run)), codeFile };
    } finally {
      // The block may have replaced the file or locked the directory; its result counts all the same.
      if (temporary) await removeOwnFile(codeFile);
    }
  }

  runProgram(program: ProgramRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    return this.#run(program.argv, program);
  }

  get workspacePath(): string {
    return this.#parts.directories.workDirectory;
  }

  async reset(): Promise<void> {
    const family = { mark: markOf(this.#settings), endedRoots: this.#started };
    await Promise.all([this.#parts.group?.kill(), killProcesses(family)]);
    this.#started.clear();
    for (const socket of this.#leftOpen) socket.destroy();
  }

  async close(): Promise<void> {
    const { pipes, directories, group, leash } = this.#parts;
    await this.reset();
    this.#calls?.server.close();
    try {
      await group?.remove();
      await pipes.settle();
      await directories.remove();
    } finally {
      await leash.release();
    }
  }

  #run(
    command: readonly [string, ...string[]],
    run: Omit<ProgramRun, "argv"> & Pick<BlockRun, "hostCalls">,
  ): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { directories, pipes, env, seatbelt, group } = this.#parts;
    const mark = markOf(this.#settings);
    const variables = inVirtualEnv({ ...env, ...run.env }, this.#settings.virtualEnv);
    const spec = {
      command: seatbelt?.wrap(command) ?? command,
      cwd: directories.workDirectory,
      env: {
        ...variables,
        ...this.#functionVariables(run, variables),
        [mark.name]: mark.value,
      },
      ...(run.stdin === undefined ? {} : { stdin: run.stdin }),
      signal: run.signal,
      scratch: directories.sessionDirectory,
      onStart: (pid: number) => this.#started.add(pid),
      group,
      leftOpen: this.#leftOpen,
    };
    return runProcess(spec, pipes);
  }

  #functionVariables(
    run: Pick<BlockRun, "hostCalls">,
    given: Readonly<Record<string, string>>,
  ): Record<string, string> {
    if (this.#settings.functions.length === 0 && !run.hostCalls) return {};
    return functionVariables(this.functionPlaces(), run.hostCalls, given);
  }
}

async function makeSeatbelt(
  { seatbelt, virtualEnv, table }: LocalSessionSettings,
  directories: SessionDirectories,
  searchPath = "",
): Promise<Seatbelt | undefined> {
  if (!seatbelt) return undefined;
  return prepareSeatbelt({ ...seatbelt, virtualEnv }, { programs: programsOf(table), searchPath }, directories);
}

/** The variable that identifies every process that a session started, wherever it went. */
function markOf({ id }: LocalSessionSettings): { readonly name: string; readonly value: string } {
  return { name: "FENCED_SESSION", value: id };
}

/** Takes precedence even over a `PATH` that the user gave. */
function inVirtualEnv(
  env: Readonly<Record<string, string>>,
  virtualEnv: VirtualEnv | undefined,
): Readonly<Record<string, string>> {
  if (!virtualEnv) return env;
  const { bin, directory } = virtualEnv;
  const searchPath = [bin, ...(env["PATH"] === undefined ? [] : [env["PATH"]])];
  return { ...env, VIRTUAL_ENV: directory, PATH: searchPath.join(path.delimiter) };
}
