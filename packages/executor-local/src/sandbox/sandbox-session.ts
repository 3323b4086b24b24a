import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  ExecutorStoppedError,
  InvalidInputError,
  type ExecutorCapabilities,
  type FunctionWithRequirements,
  type NetworkDecision,
} from "@fenced/core";
import { EgressProxy } from "@fenced/egress";
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
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type DirectoryFiles,
  type FunctionPlaces,
  type LanguageCommand,
  type PlaceLanguages,
  type ProgramRun,
} from "@fenced/executor-kit";
import {
  type InterpretBlock,
  type InterpretingSession,
  interpreterProgram,
  outcomeOf,
  type ProgramEnd,
  SessionNetwork,
  type StatefulPlace,
  type WarmOptions,
  warmPrograms,
} from "@fenced/executor-kit/supervisor";
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
  readonly warm: false | WarmOptions | undefined;
  /** Python blocks run in an interpreter that lives from block to block. */
  readonly stateful: boolean;
  /** Called when the sandbox was lost and replaced: everything in it except the work directory is gone. */
  readonly onReplaced: () => void;
  /** Called when the sandbox can no longer be used. */
  readonly onLost: (reason: string) => void;
}

/** The resources of a session. */
interface SessionParts {
  /** Absent if the policy lists no hosts. */
  readonly network: SessionNetwork | undefined;
  readonly directories: SessionDirectories;
  readonly groups: LimitGroups;
  readonly leashes: readonly Leash[];
}

/** A Linux sandbox in which all blocks run, and its directories. A lost sandbox is replaced for the next block. */
export class SandboxSession implements InterpretingSession {
  readonly files: DirectoryFiles;
  readonly #settings: SandboxSettings;
  readonly #parts: SessionParts;
  #prepared: PreparedSandbox;
  #started: StartedSandbox;
  #languages: PlaceLanguages;
  #opening: Promise<RunningSandbox> | undefined;
  #closed = false;

  private constructor(
    settings: SandboxSettings,
    parts: SessionParts,
    prepared: PreparedSandbox,
    started: StartedSandbox,
  ) {
    this.#settings = settings;
    this.#parts = parts;
    this.#prepared = prepared;
    this.#started = started;
    this.#languages = languagesOf(settings, started.sandbox);
    this.files = parts.directories.files();
    this.#keepWarm();
    started.sandbox.whenLost(settings.onLost);
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
    const parts = { directories, groups, leashes, network: SessionNetwork.of(settings.network, EgressProxy) };
    try {
      await directories.make();
      const prepared = await prepare(settings, directories, await groups.make(settings));
      const started = await startSandbox(prepared, parts.network, signal);
      return new SandboxSession(settings, parts, prepared, started);
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

  async *run(block: BlockRun, interpret?: InterpretBlock): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const sandbox = await this.#ready(block.signal);
    const language = this.#languages.found.get(block.language);
    if (!language) {
      throw new InvalidInputError(`No command runs ${block.language}`, { remedy: "Restart the executor." });
    }
    const needsFile = interpret === undefined || block.filename !== undefined;
    const codeFile = needsFile
      ? await writeBlock(this.#parts.directories, this.files, block, language.extension)
      : undefined;
    const temporary = block.filename === undefined && this.#settings.cleanupTempFiles;
    const refusals = this.#parts.network?.collect();
    let network: readonly NetworkDecision[] | undefined;
    let end: ProgramEnd;
    let endedAt: number;
    try {
      const env = this.#environment(block);
      const argv = [...language.command, codeFile ?? ""];
      const stdin = block.stdin === undefined ? {} : { stdin: block.stdin };
      const { signal } = block;
      end = yield* interpret?.(env, signal) ?? sandbox.supervisor.run({ argv, env, ...stdin, signal });
    } finally {
      endedAt = performance.now();
      network = refusals?.();
      // The block may have replaced the file or locked the directory; its result counts all the same.
      if (temporary && codeFile !== undefined) await removeOwnFile(codeFile);
    }
    if (end.outOfMemory) yield { type: "stderr", data: this.#memorySentence() };
    return { ...outcomeOf(end), endedAt, ...(network && { network }), ...(codeFile !== undefined && { codeFile }) };
  }

  async *runProgram(program: ProgramRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { supervisor } = await this.#ready(program.signal);
    const end = yield* supervisor.run({ ...program, env: this.#environment(program) });
    if (end.outOfMemory) yield { type: "stderr", data: this.#memorySentence() };
    return { exitCode: end.exitCode };
  }

  async interpreterPlace(signal: AbortSignal): Promise<StatefulPlace> {
    const { supervisor } = await this.#ready(signal);
    const { warm, env } = this.#settings;
    const settings = { env: this.#environment({ env }), commands: this.functionPlaces().commands ?? "", warm };
    return { supervisor, program: interpreterProgram(this.#languages, settings) };
  }

  get workspacePath(): string {
    return this.#parts.directories.workDirectory;
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
      await this.#started.sandbox.end();
    } finally {
      await release(this.#parts);
    }
  }

  /** Returns the sandbox, or a new one if the last one was lost. */
  async #ready(signal: AbortSignal): Promise<RunningSandbox> {
    if (this.#closed) throw new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
    if (!this.#started.sandbox.lost) return this.#started.sandbox;
    this.#opening ??= this.#replace(signal).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #replace(signal: AbortSignal): Promise<RunningSandbox> {
    await this.#started.sandbox.end();
    // Resolve the shared paths again, because code may have put links into them.
    this.#prepared = await prepare(this.#settings, this.#parts.directories, this.#prepared.plan.limits);
    this.#started = await startSandbox(this.#prepared, this.#parts.network, signal);
    const { sandbox } = this.#started;
    this.#languages = languagesOf(this.#settings, sandbox);
    sandbox.whenLost(this.#settings.onLost);
    this.#keepWarm();
    this.#settings.onReplaced();
    return sandbox;
  }

  #keepWarm(): void {
    const { warm, stateful, env } = this.#settings;
    // Hostile code in an interpreter that lives on could wait for those that wait.
    if (stateful) return;
    const programs = warmPrograms(this.#languages, warm, this.#environment({ env }));
    if (programs) this.#started.sandbox.supervisor.keepWarm(programs);
  }

  #environment({ env, hostCalls }: Pick<BlockRun, "env" | "hostCalls">): Record<string, string> {
    const { networkVariables } = this.#started;
    const variables = { ...blockEnvironment, ...networkVariables, ...env, ...this.#prepared.blockEnvironment };
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

/** A sandbox, and the variables that tell its programs where the proxy is. */
interface StartedSandbox {
  readonly sandbox: RunningSandbox;
  readonly networkVariables: Readonly<Record<string, string>>;
}

async function startSandbox(
  { plan, firstEnvironment }: PreparedSandbox,
  network: SessionNetwork | undefined,
  signal: AbortSignal,
): Promise<StartedSandbox> {
  const sandbox = await RunningSandbox.open(plan, firstEnvironment, signal);
  try {
    return { sandbox, networkVariables: (await network?.enter(sandbox.supervisor)) ?? {} };
  } catch (error) {
    await sandbox.end();
    throw error;
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

async function release({ directories, groups, leashes, network }: SessionParts): Promise<void> {
  try {
    await network?.close();
    await groups.remove();
    await directories.remove();
  } finally {
    await Promise.all(leashes.map(async (leash) => leash.release()));
  }
}
