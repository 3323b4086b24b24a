import { randomUUID } from "node:crypto";
import path from "node:path";
import { blockSource } from "../../languages/command-languages.ts";
import type { BlockRun } from "../../run/block-run.ts";
import { RemoteFiles } from "../../workspace/remote-files.ts";
import type { BlockFile, PlaceWorkspace, PlannedFile } from "../connector.ts";
import { SupervisedFiles } from "../files/supervised-files.ts";
import type { Supervisor } from "../supervisor.ts";

/** Where a work directory is, and what in it belongs to the session. */
export interface SentWorkspaceSettings {
  readonly supervisor: Supervisor;
  /** Path of Python in the place. */
  readonly python: string;
  /** Absolute path of the work directory, as programs see it. */
  readonly path: string;
  /** The beginning of the names of the session's own files in the work directory. */
  readonly filePrefix: string;
  /** The same for all sessions of the executor. Default: `filePrefix`. */
  readonly ownPrefix?: string;
  /** Files of blocks are kept. */
  readonly keepFiles: boolean;
  /** The name of the functions' module. */
  readonly functionsModule: string;
  /** The work directory's absolute path on this host, if this host sees it, too. Default: it does not. */
  readonly onHost?: string;
  /** The package of the functions in `node_modules` belongs to the session from the start. */
  readonly hasPackage: boolean;
}

/** A work directory that this host reaches only through the supervisor, which gets a block's file with the program. */
export class SentWorkspace implements PlaceWorkspace {
  readonly path: string;
  readonly files: RemoteFiles;
  readonly filesStay: boolean = false;
  readonly #settings: SentWorkspaceSettings;
  readonly #access: SupervisedFiles;
  #hasPackage: boolean;

  constructor(settings: SentWorkspaceSettings) {
    const { supervisor, python, path: workspace, filePrefix, ownPrefix = filePrefix, functionsModule } = settings;
    this.#settings = settings;
    this.#hasPackage = settings.hasPackage;
    this.path = workspace;
    const packages = `node_modules/${functionsModule}/`;
    this.#access = new SupervisedFiles({
      workspace,
      python,
      filePrefix,
      supervisor: () => Promise.resolve(supervisor),
    });
    this.files = new RemoteFiles(
      this.#access,
      (file) => file.startsWith(ownPrefix) || (this.#hasPackage && `${file}/`.startsWith(packages)),
    );
  }

  async writeBlock(block: BlockRun, extension: string): Promise<BlockFile> {
    const { language, code, filename } = block;
    if (filename !== undefined) await this.files.write(filename, blockSource(language, code));
    return this.#fileOf(block, extension);
  }

  planBlock(block: BlockRun, extension: string): PlannedFile {
    const { language, code, filename } = block;
    const file = this.#fileOf(block, extension);
    if (filename === undefined) return { file };
    return { file, write: this.#access.writing(filename, blockSource(language, code)) };
  }

  /** Our own files are sent together with the program, which saves a request; the supervisor removes them again. */
  #fileOf({ language, code, filename }: BlockRun, extension: string): BlockFile {
    if (filename !== undefined) return { path: `${this.path}/${filename}`, ...this.#onHost(filename) };
    const { filePrefix, keepFiles } = this.#settings;
    const name = `${filePrefix}${randomUUID().slice(0, 12)}.${extension}`;
    const sent = { name, content: blockSource(language, code), keep: keepFiles };
    return { path: `${this.path}/${name}`, sent, ...this.#onHost(name) };
  }

  #onHost(name: string): Pick<BlockFile, "onHost"> {
    const { onHost } = this.#settings;
    return onHost === undefined ? {} : { onHost: path.join(onHost, name) };
  }

  settle(): undefined {
    // The supervisor has removed the block's file.
  }

  hideFunctionsPackage(): void {
    this.#hasPackage = true;
  }
}
