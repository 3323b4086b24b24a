import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { FileNotFoundError, InvalidInputError, type FileInfo, type WorkspaceFiles } from "@fenced/core";
import { normalizeWorkspacePath } from "@fenced/executor-kit";
import type { FilesApi, RemoteContent, RemoteEntry } from "../api/session-api.ts";
import { fileError } from "./file-error.ts";
import { assertSize, localContent } from "./local-content.ts";

/** How often the content of a file is asked for if the connection is lost in the middle of it. */
const downloadAttempts = 4;

/** The files of a session: what stands below its `/mnt/data`. */
export class RemoteFiles implements WorkspaceFiles {
  readonly #session: () => Promise<FilesApi>;
  readonly #isHidden: (relativePath: string) => boolean;

  /**
   * @param session - the session whose files are meant, asked for at each call.
   * @param isHidden - tells the executor's own files, by their relative paths.
   */
  constructor(session: () => Promise<FilesApi>, isHidden: (relativePath: string) => boolean) {
    this.#session = session;
    this.#isHidden = isHidden;
  }

  async list(directory = "."): Promise<FileInfo[]> {
    const found: FileInfo[] = [];
    const api = await this.#session();
    const left = [normalizeWorkspacePath(directory)];
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      for (const { name, isDirectory, size } of await this.#entries(api, next)) {
        const file = path.posix.join(next, name);
        if (this.#isHidden(file)) continue;
        if (isDirectory) left.push(file);
        else found.push({ path: file, size });
      }
    }
    return found.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  async read(file: string): Promise<Uint8Array> {
    return this.#withContent(file, async ({ bytes }) => {
      const pieces: Uint8Array[] = [];
      for await (const piece of bytes) pieces.push(piece);
      return new Uint8Array(Buffer.concat(pieces));
    });
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    assertSize(file, bytes.length);
    await this.#write(file, {
      length: bytes.length,
      async *read() {
        yield bytes;
      },
    });
  }

  async remove(file: string): Promise<void> {
    const name = fileName(file);
    const api = await this.#session();
    const siblings = await this.#entries(api, path.posix.dirname(name), file);
    const entry = siblings.find((each) => each.name === path.posix.basename(name));
    if (entry?.isDirectory === true) await this.#removeDirectory(api, name);
    // A symbolic link is in no list; if there is nothing at all, the service says so.
    else await api.removeFile(name).catch(rethrow(file));
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    for (const local of localPaths) await localContent(local);
    for (const local of localPaths) await this.#write(path.basename(local), await localContent(local));
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const copy = path.resolve(toDirectory, fileName(file));
      await this.#withContent(file, async ({ bytes }) => {
        await mkdir(path.dirname(copy), { recursive: true });
        await pipeline(bytes, createWriteStream(copy)).catch(async (error: unknown) => {
          await rm(copy, { force: true });
          throw error;
        });
      });
      copies.push(copy);
    }
    return copies;
  }

  async #entries(api: FilesApi, directory: string, given = directory): Promise<RemoteEntry[]> {
    if (directory !== "." && !api.hasDirectories) throw notThere(given);
    return api.listDirectory(directory).catch(rethrow(given));
  }

  async #write(file: string, content: Awaited<ReturnType<typeof localContent>>): Promise<void> {
    const name = fileName(file);
    const api = await this.#session();
    if (name.includes("/") && !api.hasDirectories) {
      throw new InvalidInputError(`${JSON.stringify(file)} is in a directory, which the older API does not have`, {
        remedy: "Use a name without `/`, or a newer `apiVersion`.",
      });
    }
    await api.writeFile(name, content).catch(rethrow(file));
  }

  async #removeDirectory(api: FilesApi, directory: string): Promise<void> {
    for (const { name, isDirectory } of await this.#entries(api, directory)) {
      const file = path.posix.join(directory, name);
      if (isDirectory) await this.#removeDirectory(api, file);
      else await api.removeFile(file).catch(rethrow(file));
    }
    // With what no list shows, such as symbolic links.
    await api.removeFile(directory).catch(rethrow(directory));
  }

  async #withContent<T>(file: string, use: (content: RemoteContent) => Promise<T>): Promise<T> {
    const name = fileName(file);
    const api = await this.#session();
    if (name.includes("/") && !api.hasDirectories) throw notThere(file);
    for (let attempt = 1; ; attempt += 1) {
      const content = await api.readFile(name).catch(rethrow(file));
      try {
        return await use(content);
      } catch (error) {
        if (attempt === downloadAttempts || !isLostConnection(error)) throw error;
      }
    }
  }
}

/** @throws WorkspacePathError if the path leads out, InvalidInputError if it is the workspace itself. */
function fileName(given: string): string {
  const normal = normalizeWorkspacePath(given);
  if (normal !== ".") return normal;
  throw new InvalidInputError(`${JSON.stringify(given)} is a directory`, { remedy: "Name a file or directory in it." });
}

function notThere(file: string): FileNotFoundError {
  return new FileNotFoundError(`There is no file ${JSON.stringify(file)} in the session`, {
    remedy: "`files.list()` says which files there are.",
  });
}

function rethrow(file: string): (error: unknown) => never {
  return (error) => {
    throw fileError(error, file);
  };
}

function isLostConnection(error: unknown): boolean {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  // A client that was closed meanwhile says so when it is asked again.
  if (code === "UND_ERR_DESTROYED") return true;
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "UND_ERR_BODY_TIMEOUT";
}
