import { randomUUID } from "node:crypto";
import type { FunctionWithRequirements } from "@fenced/core";
import { EgressProxy } from "@fenced/egress";
import { findPlaceLanguages, type LanguageCommand, Leash, programsOf, SessionDirectories } from "@fenced/executor-kit";
import { sessionMark, SessionNetwork, SupervisedSession, type WarmOptions } from "@fenced/executor-kit/supervisor";
import { LocalPlace } from "../local-place.ts";
import { OutputPipes } from "../processes/pipes.ts";
import { RunningSupervisor } from "../running-supervisor.ts";
import { LimitGroups, type SandboxLimits, type WantedLimits } from "./limit-groups.ts";
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
  /** Called when the sandbox was lost and replaced; everything in it except the work directory is gone. */
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
  readonly leash: Leash;
  readonly outputs: OutputPipes;
}

/** A session whose blocks run in a Linux sandbox. A lost sandbox is replaced for the next block. */
export class SandboxSession extends SupervisedSession<LocalPlace> {
  readonly #settings: SandboxSettings;
  readonly #parts: SessionParts;
  readonly #limits: SandboxLimits;

  private constructor(settings: SandboxSettings, parts: SessionParts, limits: SandboxLimits) {
    super({
      ...settings,
      keepFiles: !settings.cleanupTempFiles,
      workspacePath: parts.directories.workDirectory,
      directory: sandboxDirectory(settings.id),
      network: parts.network,
      memorySentence: memorySentence(limits),
    });
    this.#settings = settings;
    this.#parts = parts;
    this.#limits = limits;
  }

  /** @throws BackendUnavailableError if the sandbox does not start; InvalidInputError if something cannot be shared. */
  static async open(settings: SandboxSettings, signal: AbortSignal): Promise<SandboxSession> {
    const directories = await SessionDirectories.plan(settings);
    const groups = await LimitGroups.plan(`fenced-${randomUUID()}`);
    // Started before there is anything to remove, since this program may die at any moment.
    const mark = { name: sessionMark, value: settings.id };
    const leash = new Leash({ mark, controlGroups: groups.all, ...directories.leashed });
    const outputs = new OutputPipes(directories.sessionDirectory);
    const parts = { directories, groups, leash, outputs, network: SessionNetwork.of(settings.network, EgressProxy) };
    try {
      const [limits, made] = await Promise.allSettled([
        groups.make(settings),
        directories.make().then(async () => outputs.make()),
      ]);
      if (limits.status === "rejected") throw limits.reason;
      if (made.status === "rejected") throw made.reason;
      const session = new SandboxSession(settings, parts, limits.value);
      await session.ready(signal);
      return session;
    } catch (error) {
      await release(parts);
      throw error;
    }
  }

  protected override claimFunctionsPackage(): void {
    this.#parts.directories.claimFunctionsPackage();
  }

  protected override async openPlace(old: LocalPlace | undefined, signal: AbortSignal): Promise<LocalPlace> {
    const { directories, network, outputs } = this.#parts;
    const { table, givenLanguages, cleanupTempFiles } = this.#settings;
    await old?.end();
    // Prepared anew each time, because code may have put links into the shared paths.
    const prepared = await prepareSandbox(this.#settings, programsOf(table), directories, this.#limits);
    const { plan, firstEnvironment, blockEnvironment } = prepared;
    const output = await outputs.take();
    const sandbox = await RunningSupervisor.open(new SandboxProcess(plan, firstEnvironment, output), signal);
    try {
      const networkVariables = (await network?.enter(sandbox.supervisor)) ?? {};
      const languages = findPlaceLanguages(table, givenLanguages, sandbox.inventory, inSandbox);
      const variables = (given: Readonly<Record<string, string>>): Readonly<Record<string, string>> => {
        return { ...networkVariables, ...given, ...blockEnvironment };
      };
      return new LocalPlace(sandbox, { languages, directories, cleanupTempFiles, variables });
    } catch (error) {
      await sandbox.end();
      throw error;
    }
  }

  protected override async closeWith(place: LocalPlace | undefined): Promise<void> {
    try {
      await place?.end();
    } finally {
      await release(this.#parts);
    }
  }
}

const inSandbox = {
  name: "the sandbox",
  remedy: "install it in a system directory, or share its directory with `readable`",
};

function memorySentence({ memoryBytes }: SandboxLimits): string {
  const limit = Math.round(memoryBytes / 1_048_576);
  return `\nThe block was killed because its sandbox ran out of memory (limit: ${limit} MiB). Process less data at a time. Files in /tmp count as memory: remove what you do not need.\n`;
}

async function release({ directories, groups, leash, outputs, network }: SessionParts): Promise<void> {
  outputs.close();
  try {
    await network?.close();
    const [removed] = await Promise.allSettled([directories.remove(), groups.remove()]);
    if (removed.status === "rejected") throw removed.reason;
  } finally {
    await leash.release();
  }
}
