import { createReadStream, createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { InvalidInputError, type FileInfo, type WorkspaceFiles } from "@fenced/core";
import { assertLocalFile } from "./local-file.ts";
import { normalizeWorkspacePath } from "./workspace-path.ts";

/** What a place that is not this host can do with the files of a workspace. Paths are relative to it and normalised. */
export interface RemoteFileAccess {
  /**
   * All regular files below a directory, in any order; symbolic links are left out.
   *
   * @throws FileNotFoundError, WorkspacePathError
   */
  list(directory: string): Promise<readonly FileInfo[]>;
  /**
   * The content of a regular file.
   *
   * @throws FileNotFoundError, InvalidInputError, WorkspacePathError
   */
  content(file: string): AsyncIterable<Uint8Array>;
  /**
   * Makes or replaces a file, and the directories that it lies in.
   *
   * @throws InvalidInputError, WorkspacePathError
   */
  put(file: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
  /**
   * Removes a file, a link or a whole directory.
   *
   * @throws FileNotFoundError, WorkspacePathError
   */
  remove(file: string): Promise<void>;
}

/** Turns four methods into the `WorkspaceFiles` of an executor whose workspace is not on this host. Content is streamed. */
export class RemoteFiles implements WorkspaceFiles {
  readonly #access: RemoteFileAccess;
  readonly #isHidden: (relativePath: string) => boolean;

  /** @param isHidden - tells the executor's own files, which are not listed, by their relative paths. */
  constructor(access: RemoteFileAccess, isHidden: (relativePath: string) => boolean = () => false) {
    this.#access = access;
    this.#isHidden = isHidden;
  }

  async list(directory = "."): Promise<FileInfo[]> {
    const files = await this.#access.list(normalizeWorkspacePath(directory));
    return files
      .filter((file) => !this.#isHidden(file.path))
      .toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  async read(file: string): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.#access.content(normalizeWorkspacePath(file))) chunks.push(chunk);
    return new Uint8Array(Buffer.concat(chunks));
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    await this.#access.put(normalizeWorkspacePath(file), [typeof data === "string" ? Buffer.from(data) : data]);
  }

  async remove(file: string): Promise<void> {
    const relative = normalizeWorkspacePath(file);
    if (relative === ".") {
      throw new InvalidInputError("The workspace itself cannot be removed", {
        remedy: "Name a file or directory in it.",
      });
    }
    await this.#access.remove(relative);
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    for (const local of localPaths) await assertLocalFile(local);
    for (const local of localPaths) await this.#access.put(path.basename(local), contentOf(local));
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const relative = normalizeWorkspacePath(file);
      const copy = path.resolve(toDirectory, relative);
      const content = this.#access.content(relative)[Symbol.asyncIterator]();
      // The first piece, or the end, says that the file is there: without it no directory is made here.
      const first = await content.next();
      try {
        await mkdir(path.dirname(copy), { recursive: true });
        await pipeline(restOf(first, content), createWriteStream(copy));
      } finally {
        await content.return?.();
      }
      copies.push(copy);
    }
    return copies;
  }
}

/** Opened when it is read, so that nothing is left open and every error has a listener. */
async function* contentOf(local: string): AsyncGenerator<Uint8Array, void, void> {
  yield* createReadStream(local);
}

async function* restOf(
  first: IteratorResult<Uint8Array>,
  content: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  for (let step = first; step.done !== true; step = await content.next()) yield step.value;
}
