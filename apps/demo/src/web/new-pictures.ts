import type { FileInfo, WorkspaceFiles } from "@fenced/core";

const maxPictures = 4;
const maxBytes = 4_000_000;

/** Finds the pictures that programs have written to files since the last time. */
export class NewPictures {
  /** The size and time of each picture. */
  readonly #known = new Map<string, string>();

  /** Finds the first few that are new or have changed, and are not too large to show. */
  async findNew(workspace: WorkspaceFiles, files: readonly FileInfo[]): Promise<string[]> {
    const pictures = files.filter(({ path, size }) => /\.(?:svg|png|jpe?g|gif|webp)$/i.test(path) && size <= maxBytes);
    const found: string[] = [];
    for (const { path } of pictures.slice(0, 10 * maxPictures)) {
      const { size, modifiedAt } = await workspace.stat(path);
      const version = `${size} ${modifiedAt?.getTime()}`;
      if (this.#known.get(path) !== version && found.length < maxPictures) {
        this.#known.set(path, version);
        found.push(path);
      }
    }
    return found;
  }
}
