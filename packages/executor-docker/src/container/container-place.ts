import { BackendUnavailableError, FencedError } from "@fenced/core";
import { type BackendFiles, type BlockRun, blockSource, type PlaceLanguages } from "@fenced/executor-kit";
import type { BlockFile, SupervisedPlace } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { BlockRunner } from "../run/exec-runner.ts";
import type { RunningContainer } from "./running-container.ts";

/** The work directory of one container, however its files get there. */
export interface ContainerWorkspace {
  readonly files: BackendFiles;
  /**
   * Writes a block's file.
   *
   * @param filename - path relative to the workspace; `undefined` to generate a name.
   */
  writeBlock(source: string, extension: string, filename: string | undefined): Promise<BlockFile>;
  removeBlock(file: BlockFile): Promise<void>;
  /**
   * Copies what an ended block wrote to the user's directory.
   *
   * @returns a sentence about what could not be copied. Bounded in time and size, and never rejects.
   */
  settle(): Promise<string | undefined>;
}

/** What a container has for blocks. */
export interface ContainerEquipment {
  readonly workspace: ContainerWorkspace;
  readonly languages: PlaceLanguages;
  /** Variables that tell programs where the proxy is, if there is one. */
  readonly networkVariables: Readonly<Record<string, string>>;
  /** Somebody else created the container, so it is neither ended nor removed. */
  readonly foreign: boolean;
}

/** A container, and all that blocks find in it. */
export class ContainerPlace implements SupervisedPlace {
  readonly #container: RunningContainer;
  readonly #equipment: ContainerEquipment;
  readonly #options: DockerExecutorOptions;

  constructor(container: RunningContainer, equipment: ContainerEquipment, options: DockerExecutorOptions) {
    this.#container = container;
    this.#equipment = equipment;
    this.#options = options;
  }

  get lost(): Error | undefined {
    return this.#container.lost;
  }

  get runner(): BlockRunner {
    return this.#container.runner;
  }

  get languages(): PlaceLanguages {
    return this.#equipment.languages;
  }

  get files(): BackendFiles {
    return this.#equipment.workspace.files;
  }

  /** The caller's override those that tell programs where the proxy is. */
  variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return { ...this.#equipment.networkVariables, ...given };
  }

  /** @throws BackendUnavailableError if there is not enough space or permission. */
  async writeBlock({ language, code, filename }: BlockRun, extension: string): Promise<BlockFile> {
    const { workspace } = this.#equipment;
    const temporary = filename === undefined && (this.#options.cleanupTempFiles ?? true);
    try {
      return { ...(await workspace.writeBlock(blockSource(language, code), extension, filename)), temporary };
    } catch (cause) {
      if (FencedError.isInstance(cause)) throw cause;
      throw new BackendUnavailableError(`The block could not be written to the work directory: ${String(cause)}`, {
        remedy:
          "Make room with `files.list()` and `files.remove()` if its disk is full, and check that it is writable.",
        cause,
      });
    }
  }

  async settle(file: BlockFile | undefined): Promise<string | undefined> {
    if (this.lost) return undefined;
    const { workspace } = this.#equipment;
    if (file?.temporary === true) await workspace.removeBlock(file).catch(() => {});
    return workspace.settle();
  }

  whenLost(action: (reason: string) => void): void {
    this.#container.whenLost(action);
  }

  end(): Promise<void> {
    return this.#container.end(true);
  }

  /** Removes what is left of a container that is lost. Never rejects. */
  async discard(): Promise<void> {
    if (!this.#equipment.foreign) await this.end().catch(() => {});
  }

  /** `leave` leaves it running. */
  get kept(): boolean {
    return this.#options.stopContainer === false || this.#equipment.foreign;
  }

  /** Ends and removes the container, or leaves it behind without anything that blocks started, as the options say. */
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
      if (!autoRemove) warnKept(container.name, "is kept, ended");
      return;
    }
    try {
      await container.runner.reset();
    } finally {
      // Detach even from a supervisor that code has stopped: if it resumes, the end of its input makes it end everything.
      container.detach();
    }
    if (!foreign) warnKept(container.name, "runs on");
  }
}

function warnKept(name: string, how: string): void {
  process.emitWarning(`The container ${name} ${how}, as the executor's options say.`, {
    code: "FENCED_DOCKER_KEPT",
    detail: `Use it again with \`containerName: "${name}", reuse: true\`, or remove it: docker rm --force --volumes ${name}`,
  });
}
