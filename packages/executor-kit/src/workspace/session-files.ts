import type { FileInfo, WorkspaceFiles } from "@fenced/core";

/** The files of whatever session is open when they are asked for; opens one if there is none. */
export class SessionFiles implements WorkspaceFiles {
  readonly #open: () => Promise<WorkspaceFiles>;

  constructor(open: () => Promise<WorkspaceFiles>) {
    this.#open = open;
  }

  async list(directory?: string): Promise<FileInfo[]> {
    return (await this.#open()).list(directory);
  }

  async read(path: string): Promise<Uint8Array> {
    return (await this.#open()).read(path);
  }

  async write(path: string, data: Uint8Array | string): Promise<void> {
    await (await this.#open()).write(path, data);
  }

  async remove(path: string): Promise<void> {
    await (await this.#open()).remove(path);
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    await (await this.#open()).upload(localPaths);
  }

  async download(paths: readonly string[], toDirectory: string): Promise<string[]> {
    return (await this.#open()).download(paths, toDirectory);
  }
}
