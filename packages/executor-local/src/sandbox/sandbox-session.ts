import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  ExecutorStoppedError,
  InvalidInputError,
  type ExecutorCapabilities,
  type FunctionWithRequirements,
} from "@fenced/core";
import {
  blockEnvironment,
  commandLineCapabilities,
  findPlaceLanguages,
  functionVariables,
  hostFunctionLanguages,
  Leash,
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
  type PlaceLanguages,
} from "@fenced/executor-kit";
import type { ProgramEnd } from "@fenced/executor-kit/supervisor";
import { writeBlock } from "../write-block.ts";
import { LimitGroups, type SandboxLimits, type WantedLimits } from "./limit-groups.ts";
import { prepareSandbox, type PreparedSandbox, type SandboxWishes } from "./prepare-sandbox.ts";
import { RunningSandbox } from "./running-sandbox.ts";

/** The settings of a session. */
export interface SandboxSettings extends SandboxWishes, WantedLimits {
  /** Absolute path; `undefined` for a directory that the session creates. */
  readonly workDirectory: string | undefined;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages whose command the user gave. */
  readonly givenLanguages: ReadonlySet<string>;
  readonly cleanupTempFiles: boolean;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  /** Called when the sandbox was lost and replaced: everything in it except the work directory is gone. */
  readonly onReplaced: () => void;
  /** Called when the sandbox can no longer be used. */
  readonly onLost: (reason: string) => void;
}

/** The resources of a session. */
interface SessionParts {
  readonly directories: SessionDirectories;
  readonly groups: LimitGroups;
  readonly leashes: readonly Leash[];
}

/** A Linux sandbox in which all blocks run, and its directories. A lost sandbox is replaced for the next block. */
export class SandboxSession implements BackendSession {
  readonly files: DirectoryFiles;
  readonly #settings: SandboxSettings;
  readonly #parts: SessionParts;
  #prepared: PreparedSandbox;
  #sandbox: RunningSandbox;
  #languages: PlaceLanguages;
  #opening: Promise<RunningSandbox> | undefined;
  #closed = false;

  private constructor(
    settings: SandboxSettings,
    parts: SessionParts,
    prepared: PreparedSandbox,
    sandbox: RunningSandbox,
  ) {
    this.#settings = settings;
    this.#parts = parts;
    this.#prepared = prepared;
    this.#sandbox = sandbox;
    this.#languages = languagesOf(settings, sandbox);
    this.files = parts.directories.files();
    sandbox.whenLost(settings.onLost);
  }

  /** @throws BackendUnavailableError if the sandbox does not start; InvalidInputError if something cannot be shared. */
  static async open(settings: SandboxSettings, signal: AbortSignal): Promise<SandboxSession> {
    const directories = await SessionDirectories.plan(settings);
    const groups = await LimitGroups.plan(`fenced-${randomUUID()}`);
    // Before there is anything to remove, since this program may die at any moment.
    const mark = { name: "FENCED_SESSION", value: settings.id };
    const leashes = [
      new Leash({ mark, ...directories.leashed }),
      ...groups.all.map((controlGroup) => new Leash({ mark, controlGroup, remove: [] })),
    ];
    const parts = { directories, groups, leashes };
    try {
      await directories.make();
      const prepared = await prepare(settings, directories, await groups.make(settings));
      const sandbox = await RunningSandbox.open(prepared.plan, prepared.firstEnvironment, signal);
      return new SandboxSession(settings, parts, prepared, sandbox);
    } catch (error) {
      await release(parts);
      throw error;
    }
  }

  get capabilities(): Partial<ExecutorCapabilities> {
    const languages = [...this.#languages.found.keys()];
    return { ...commandLineCapabilities(languages), hostFunctions: hostFunctionLanguages(languages) };
  }

  get missing(): ReadonlyMap<string, string> {
    return this.#languages.missing;
  }

  functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { directory } = this.#prepared.plan;
    return {
      python: `${directory}/functions`,
      commands: `${directory}/bin`,
      pythonPackages: `${directory}/packages`,
      javascript: this.#parts.directories.workDirectory,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { supervisor } = await this.#ready(new AbortController().signal);
    this.#parts.directories.claimFunctionsPackage();
    return supervisor.openCalls(accept);
  }

  async *run(block: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const sandbox = await this.#ready(block.signal);
    const language = this.#languages.found.get(block.language);
    if (!language) {
      throw new InvalidInputError(`No command runs ${block.language}`, { remedy: "Restart the executor." });
    }
    const codeFile = await writeBlock(this.#parts.directories, this.files, block, language.extension);
    const temporary = block.filename === undefined && this.#settings.cleanupTempFiles;
    let end: ProgramEnd;
    let endedAt: number;
    try {
      end = yield* sandbox.supervisor.run({
        argv: [...language.command, codeFile],
        env: this.#environment(block),
        ...(block.stdin === undefined ? {} : { stdin: block.stdin }),
        signal: block.signal,
      });
    } finally {
      endedAt = performance.now();
      // The block may have replaced the file or locked the directory; its result counts all the same.
      if (temporary) await removeOwnFile(codeFile);
    }
    if (end.outOfMemory) yield { type: "stderr", data: this.#memorySentence() };
    return { exitCode: end.exitCode, endedAt, codeFile };
  }

  async repair(signal: AbortSignal): Promise<void> {
    await this.#ready(signal);
  }

  async reset(signal: AbortSignal): Promise<void> {
    const sandbox = await this.#ready(signal);
    try {
      await sandbox.supervisor.reset();
    } catch (error) {
      // A new sandbox has no processes either.
      sandbox.lose(error instanceof Error ? error : new Error(String(error)));
      await this.#ready(signal);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#opening?.catch(() => {});
    try {
      await this.#sandbox.end();
    } finally {
      await release(this.#parts);
    }
  }

  /** Returns the sandbox, or a new one if the last one was lost. */
  async #ready(signal: AbortSignal): Promise<RunningSandbox> {
    if (this.#closed) throw new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
    if (!this.#sandbox.lost) return this.#sandbox;
    this.#opening ??= this.#replace(signal).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #replace(signal: AbortSignal): Promise<RunningSandbox> {
    await this.#sandbox.end();
    // Resolve the shared paths again, because code may have put links into them.
    this.#prepared = await prepare(this.#settings, this.#parts.directories, this.#prepared.plan.limits);
    const { plan, firstEnvironment } = this.#prepared;
    this.#sandbox = await RunningSandbox.open(plan, firstEnvironment, signal);
    this.#languages = languagesOf(this.#settings, this.#sandbox);
    this.#sandbox.whenLost(this.#settings.onLost);
    this.#settings.onReplaced();
    return this.#sandbox;
  }

  #environment({ env, hostCalls }: BlockRun): Record<string, string> {
    const variables = { ...blockEnvironment, ...env, ...this.#prepared.blockEnvironment };
    const hasFunctions = this.#settings.functions.length > 0 || hostCalls !== undefined;
    return {
      ...variables,
      ...(hasFunctions ? functionVariables(this.functionPlaces(), hostCalls, variables, ":") : {}),
    };
  }

  #memorySentence(): string {
    const limit = Math.round(this.#prepared.plan.limits.memoryBytes / 1_048_576);
    return `\nThe block was killed because the ${limit} MiB of memory of its sandbox were used up. Process less data at a time. Files in /tmp count as memory: remove what you do not need.\n`;
  }
}

async function prepare(
  settings: SandboxSettings,
  directories: SessionDirectories,
  limits: SandboxLimits,
): Promise<PreparedSandbox> {
  return prepareSandbox(settings, programsOf(settings.table), directories, limits);
}

function languagesOf({ table, givenLanguages }: SandboxSettings, { inventory }: RunningSandbox): PlaceLanguages {
  const place = {
    name: "the sandbox",
    remedy: "install it in a directory of the system, or share the directory with `readable`",
  };
  return findPlaceLanguages(table, givenLanguages, inventory, place);
}

async function release({ directories, groups, leashes }: SessionParts): Promise<void> {
  await groups.remove();
  try {
    await directories.remove();
  } finally {
    await Promise.all(leashes.map(async (leash) => leash.release()));
  }
}
