import path from "node:path";
import {
  type BackendFiles,
  type BlockRun,
  type DirectoryFiles,
  type PlaceLanguages,
  removeOwnFile,
  type SessionDirectories,
} from "@fenced/executor-kit";
import type { BlockFile, SupervisedPlace, Supervisor } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { BlockRunner } from "../run/exec-runner.ts";
import { workspacePath } from "./container-options.ts";
import type { RunningContainer } from "./running-container.ts";

/** The work directory of one container, however its files get there. */
export interface ContainerWorkspace {
  readonly files: BackendFiles;
  /**
   * Writes a block's file.
   *
   * @param keep - keep a file that the block does not name when it has ended.
   * @throws BackendUnavailableError if there is not enough space or permission.
   */
  writeBlock(block: BlockRun, extension: string, keep: boolean): Promise<BlockFile>;
  /**
   * Removes the file of an ended block if it is temporary, and copies what the block wrote to the user's directory.
   *
   * @returns a sentence about what could not be copied. Bounded in time and size, and never rejects.
   */
  settle(file?: BlockFile): Promise<string | undefined>;
}

/** A work directory that the host and the container share. */
export class BoundWorkspace implements ContainerWorkspace {
  readonly #directories: SessionDirectories;

  constructor(directories: SessionDirectories) {
    this.#directories = directories;
  }

  get files(): DirectoryFiles {
    return this.#directories.files();
  }

  async writeBlock(block: BlockRun, extension: string, keep: boolean): Promise<BlockFile> {
    const onHost = await this.#directories.writeBlock(block, extension);
    const name = block.filename ?? path.basename(onHost);
    const temporary = block.filename === undefined && !keep;
    return { path: path.posix.join(workspacePath, name), onHost, temporary };
  }

  async settle(file?: BlockFile): Promise<undefined> {
    if (file?.temporary === true && file.onHost !== undefined) await removeOwnFile(file.onHost);
  }
}

/** What a container offers to blocks. */
export interface ContainerEquipment {
  readonly workspace: ContainerWorkspace;
  readonly languages: PlaceLanguages;
  /** Variables that tell programs where the proxy is, if there is one. */
  readonly networkVariables: Readonly<Record<string, string>>;
  /** True if somebody else created the container, so it is neither ended nor removed. */
  readonly foreign: boolean;
}

/** A container, with everything that blocks find in it. */
export class ContainerPlace implements SupervisedPlace {
  readonly runner: BlockRunner;
  readonly languages: PlaceLanguages;
  readonly #container: RunningContainer;
  readonly #equipment: ContainerEquipment;
  readonly #options: DockerExecutorOptions;

  constructor(container: RunningContainer, equipment: ContainerEquipment, options: DockerExecutorOptions) {
    this.runner = container.runner;
    this.languages = equipment.languages;
    this.#container = container;
    this.#equipment = equipment;
    this.#options = options;
  }

  get files(): BackendFiles {
    return this.#equipment.workspace.files;
  }

  get lost(): Error | undefined {
    return this.#container.lost;
  }

  /** `undefined` if the image has no Python. */
  get supervisor(): Supervisor | undefined {
    return this.#container.supervisor;
  }

  /** The caller's variables override those that tell programs where the proxy is. */
  variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return { ...this.#equipment.networkVariables, ...given };
  }

  writeBlock(block: BlockRun, extension: string): Promise<BlockFile> {
    return this.#equipment.workspace.writeBlock(block, extension, this.#options.cleanupTempFiles === false);
  }

  async settle(file: BlockFile | undefined): Promise<string | undefined> {
    return this.lost ? undefined : this.#equipment.workspace.settle(file);
  }

  whenLost(action: (reason: string) => void): void {
    this.#container.whenLost(action);
  }

  end(): Promise<void> {
    return this.#container.end(true);
  }

  /** Removes what is left of a lost container. Never rejects. */
  async discard(): Promise<void> {
    if (!this.#equipment.foreign) await this.end().catch(() => {});
  }

  /** True if `leave` keeps the container running. */
  get kept(): boolean {
    return this.#options.stopContainer === false || this.#equipment.foreign;
  }

  /** Depending on the options, ends and removes the container, or keeps it without anything that blocks started. */
  async leave(): Promise<void> {
    const { autoRemove = true } = this.#options;
    const { workspace, foreign } = this.#equipment;
    const container = this.#container;
    if (container.lost) {
      if (autoRemove && !this.kept) await container.end(true);
      return;
    }
    await workspace.settle();
    if (!this.kept) {
      await container.end(autoRemove);
      if (!autoRemove) warnKept(container.name, "was stopped and kept");
      return;
    }
    try {
      await container.runner.reset();
    } finally {
      // Detach even from a supervisor that code has stopped: if it resumes, it notices that its input has ended and
      // ends everything.
      container.detach();
    }
    if (!foreign) warnKept(container.name, "keeps running");
  }
}

function warnKept(name: string, how: string): void {
  process.emitWarning(`The container ${name} ${how}, as configured in the executor's options.`, {
    code: "FENCED_DOCKER_KEPT",
    detail: `Use it again with \`containerName: "${name}", reuse: true\`, or remove it: docker rm --force --volumes ${name}`,
  });
}
