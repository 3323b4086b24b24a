import { stat } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { makeDirectories } from "@fenced/core/runtime";
import { replaceLocalFile } from "./file-replacement.ts";
import { copyName } from "./path-bytes.ts";

/**
 * The copies that one download makes in a directory of this host. Different names may become the same one there: `%FF`
 * is also what a byte becomes that is not UTF-8, some systems ignore case, and a link may lead to another copy.
 */
export class LocalCopies {
  /** Absolute paths, in the order of `put`. */
  readonly paths: string[] = [];
  readonly #directory: string;
  /** The file of which there is a copy, by the device and inode numbers of the copy. */
  readonly #originals = new Map<string, string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Where a file of the workspace is copied to. */
  placeOf(file: string): string {
    return path.resolve(this.#directory, copyName(file));
  }

  /** Records a file that is its own copy. */
  keep(file: string): void {
    this.paths.push(this.placeOf(file));
  }

  /**
   * Copies a file.
   *
   * @throws InvalidInputError if that would replace the copy of another one.
   */
  async put(file: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const place = this.placeOf(file);
    const original = this.#originals.get(await identityOf(place));
    if (original !== undefined && original !== file) {
      throw new InvalidInputError(
        `The copies of ${JSON.stringify(original)} and ${JSON.stringify(file)} would be the same file, ${place}`,
        { remedy: "Download them into different directories." },
      );
    }
    await makeDirectories(path.dirname(place));
    await replaceLocalFile(place, content);
    this.#originals.set(await identityOf(place), file);
    this.paths.push(place);
  }
}

/** Empty for a file that does not exist. */
async function identityOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return found ? `${found.dev}:${found.ino}` : "";
}
