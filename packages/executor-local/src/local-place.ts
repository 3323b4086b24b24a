import {
  type BlockRun,
  type DirectoryFiles,
  type PlaceLanguages,
  removeOwnFile,
  type SessionDirectories,
} from "@fenced/executor-kit";
import type { BlockFile, SupervisedPlace, Supervisor } from "@fenced/executor-kit/supervisor";
import type { RunningSupervisor } from "./running-supervisor.ts";

/** What a place offers to blocks. */
interface PlaceEquipment {
  readonly languages: PlaceLanguages;
  readonly directories: SessionDirectories;
  readonly cleanupTempFiles: boolean;
  /** Completes a program's variables, given those of the caller. */
  readonly variables: (given: Readonly<Record<string, string>>) => Readonly<Record<string, string>>;
}

/** A supervisor on this machine, sandboxed or not, with everything that blocks find there. */
export class LocalPlace implements SupervisedPlace {
  readonly runner: Supervisor;
  readonly languages: PlaceLanguages;
  readonly files: DirectoryFiles;
  readonly variables: PlaceEquipment["variables"];
  readonly #running: RunningSupervisor;
  readonly #equipment: PlaceEquipment;

  constructor(running: RunningSupervisor, equipment: PlaceEquipment) {
    this.#running = running;
    this.#equipment = equipment;
    this.runner = running.supervisor;
    this.languages = equipment.languages;
    this.files = equipment.directories.files();
    this.variables = equipment.variables;
  }

  get lost(): Error | undefined {
    return this.#running.lost;
  }

  async writeBlock(block: BlockRun, extension: string): Promise<BlockFile> {
    const { directories, cleanupTempFiles } = this.#equipment;
    const file = await directories.writeBlock(block, extension);
    return { path: file, onHost: file, temporary: block.filename === undefined && cleanupTempFiles };
  }

  async settle(file: BlockFile | undefined): Promise<undefined> {
    // The block may have replaced the file or locked the directory; its result counts nevertheless.
    if (file?.temporary === true) await removeOwnFile(file.path);
  }

  whenLost(action: (reason: string) => void): void {
    this.#running.whenLost(action);
  }

  end(): Promise<void> {
    return this.#running.end();
  }
}
