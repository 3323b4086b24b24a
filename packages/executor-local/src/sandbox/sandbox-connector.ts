import { randomUUID } from "node:crypto";
import path from "node:path";
import type { FunctionWithRequirements } from "@fenced/core";
import { EgressProxy } from "@fenced/egress";
import {
  findPlaceLanguages,
  type LanguageCommand,
  Leash,
  type ProgramsPlace,
  programsOf,
  SessionDirectories,
} from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  HostWorkspace,
  sessionMark,
  SessionNetwork,
  SupervisedBackend,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { OutputPipes } from "../processes/pipes.ts";
import { RunningSupervisor } from "../running-supervisor.ts";
import { defaultMemoryBytes, LimitGroups, type SandboxLimits, type WantedLimits } from "./limit-groups.ts";
import { prepareSandbox, sandboxDirectory, type SandboxWishes } from "./prepare-sandbox.ts";
import { SandboxProcess } from "./sandbox-process.ts";

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
  /** True if Python blocks run in an interpreter that lives from block to block. */
  readonly stateful: boolean;
}

/** The resources of a session. */
interface SessionParts {
  readonly directories: SessionDirectories;
  readonly groups: LimitGroups;
  readonly leash: Leash;
  readonly outputs: OutputPipes;
}

/** Connects to Linux sandboxes, and has what outlives one while the executor is started. */
export class SandboxConnector implements Connector {
  readonly #settings: SandboxSettings;
  readonly #parts: SessionParts;
  readonly #limits: SandboxLimits;

  private constructor(settings: SandboxSettings, parts: SessionParts, limits: SandboxLimits) {
    this.#settings = settings;
    this.#parts = parts;
    this.#limits = limits;
  }

  static async open(settings: SandboxSettings): Promise<SandboxConnector> {
    const directories = await SessionDirectories.plan(settings);
    const groups = await LimitGroups.plan(`fenced-${randomUUID()}`);
    // Started before there is anything to remove, since this program may die at any moment.
    const mark = { name: sessionMark, value: settings.id };
    const pipe = path.join(directories.sessionDirectory, "output");
    const leash = new Leash({ mark, controlGroups: groups.all, pipe, ...directories.leashed });
    const outputs = new OutputPipes(pipe, async () => leash.makePipe());
    const parts = { directories, groups, leash, outputs };
    try {
      const [limits, made] = await Promise.allSettled([
        groups.make(settings),
        directories.make().then(async () => outputs.make()),
      ]);
      if (limits.status === "rejected") throw limits.reason;
      if (made.status === "rejected") throw made.reason;
      return new SandboxConnector(settings, parts, limits.value);
    } catch (error) {
      await release(parts);
      throw error;
    }
  }

  /** The work directory. */
  get workDirectory(): string {
    return this.#parts.directories.workDirectory;
  }

  /** Makes places of its sandboxes. */
  backend(): SupervisedBackend {
    return sandboxBackend(this.#settings, this);
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { directories, outputs } = this.#parts;
    const { id, table, givenLanguages, cleanupTempFiles } = this.#settings;
    // Prepared anew each time, because code may have put links into the shared paths.
    const prepared = await prepareSandbox(this.#settings, programsOf(table), directories, this.#limits);
    const { plan, firstEnvironment, blockEnvironment } = prepared;
    const output = await outputs.take();
    const sandbox = await RunningSupervisor.open(new SandboxProcess(plan, firstEnvironment, output), signal);
    return {
      runner: sandbox.supervisor,
      languages: findPlaceLanguages(table, givenLanguages, sandbox.inventory, inSandbox),
      workspace: new HostWorkspace(directories, { keepFiles: !cleanupTempFiles }),
      directory: sandboxDirectory(id),
      lost: sandbox.lost,
      variables: (given) => ({ ...given, ...blockEnvironment }),
      end: () => sandbox.end(),
    };
  }

  async close(): Promise<void> {
    await release(this.#parts);
  }
}

/** Makes places of the sandboxes that a connector opens. */
export function sandboxBackend(settings: SandboxSettings, connector: Connector): SupervisedBackend {
  const { id, env, functions, warm, stateful, cleanupTempFiles, memoryBytes } = settings;
  const common = { id, env, functions, warm, stateful, keepFiles: !cleanupTempFiles, installsApart: true };
  const network = SessionNetwork.of(settings.network, EgressProxy);
  return new SupervisedBackend({ ...common, network, memorySentence: memorySentence(memoryBytes) }, connector);
}

/** Where programs are searched, for messages about those that were not found. */
export const inSandbox: ProgramsPlace = {
  name: "the sandbox",
  remedy: "install it in a system directory, or share its directory with `readable`",
};

function memorySentence(memoryBytes = defaultMemoryBytes): string {
  const limit = Math.round(memoryBytes / 1_048_576);
  return `\nThe block was killed because its sandbox ran out of memory (limit: ${limit} MiB). Process less data at a time. Files in /tmp count as memory: remove what you do not need.\n`;
}

async function release({ directories, groups, leash, outputs }: SessionParts): Promise<void> {
  outputs.close();
  try {
    const [removed] = await Promise.allSettled([directories.remove(), groups.remove()]);
    if (removed.status === "rejected") throw removed.reason;
  } finally {
    await leash.release();
  }
}
