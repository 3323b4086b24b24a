import { randomUUID } from "node:crypto";
import {
  BackendUnavailableError,
  FencedError,
  FileNotFoundError,
  InvalidInputError,
  WorkspacePathError,
  type FileEntry,
  type FileFeature,
  type FileStat,
  type ListOptions,
} from "@fenced/core";
import {
  allFileFeatures,
  modifiedAt,
  normalizeWorkspacePath,
  RemoteFiles,
  type FileContent,
  type RemoteFileAccess,
} from "@fenced/executor-kit";
import { field, textField } from "../fields.ts";
import { KernelLostError } from "../kernel/kernel-request.ts";
import type { PythonHelper } from "../python/python-helper.ts";
import { chunksOf } from "./chunks.ts";

/** Bytes in one message; as base64 they fit into the 10 MiB that Jupyter servers accept. */
const chunkBytes = 1_048_576;
/** A link's target has at most 4096 bytes. */
const longestTarget = 4096;

/** The workspace of a Python kernel, reached through the kernel itself, wherever it runs, even while a block runs. */
export function kernelFiles(helper: () => Promise<PythonHelper>): RemoteFiles {
  return new RemoteFiles(new KernelFileAccess(helper));
}

/** Code can change the helper, so its answers are checked: nothing here loops forever or leaves the workspace. */
class KernelFileAccess implements RemoteFileAccess {
  readonly seeks = true;
  readonly measurable = true;
  readonly features: readonly FileFeature[] = allFileFeatures;
  readonly #helper: () => Promise<PythonHelper>;

  constructor(helper: () => Promise<PythonHelper>) {
    this.#helper = helper;
  }

  async *list(
    directory: string,
    { recursive = true, directories = false }: ListOptions = {},
  ): AsyncGenerator<FileEntry, void, void> {
    const listing = randomUUID();
    let ended = false;
    try {
      while (!ended) {
        const answer = await this.#ask(directory, "list_files", { listing, directory, recursive, directories });
        const files: unknown = field(answer, "files");
        ended = field(answer, "end") === true;
        if (!Array.isArray(files) || (files.length === 0 && !ended)) throw strange(directory);
        yield* files.map(fileInfo).filter((file) => file !== undefined);
      }
    } finally {
      if (!ended) await this.#tidy("drop_listing", { listing });
    }
  }

  async stat(file: string, followLinks: boolean): Promise<FileStat> {
    const answer = await this.#ask(file, "stat_file", { path: file, follow: followLinks });
    const [type, size, modified] = [textField(answer, "type"), field(answer, "size"), field(answer, "modified")];
    const [mode, linkTarget] = [field(answer, "mode"), textField(answer, "target")];
    if (type !== "file" && type !== "directory" && (followLinks || type !== "link")) throw strange(file);
    if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) throw strange(file);
    if (typeof mode !== "number" || !Number.isSafeInteger(mode) || mode < 0) throw strange(file);
    return {
      path: file,
      type,
      size,
      mode: mode & 0o777,
      ...(typeof modified === "number" ? modifiedAt(modified * 1000) : {}),
      ...(linkTarget !== "" && linkTarget.length <= longestTarget && { linkTarget }),
    };
  }

  async *content(file: string, start: number): AsyncGenerator<Uint8Array, void, void> {
    for (let offset = start; ;) {
      const answer = await this.#ask(file, "read_file", { path: file, offset, length: chunkBytes });
      const chunk = Buffer.from(textField(answer, "data"), "base64");
      const ended = field(answer, "end") === true;
      if (chunk.length > chunkBytes || (chunk.length === 0 && !ended)) throw strange(file);
      yield chunk;
      if (ended) return;
      offset += chunk.length;
    }
  }

  async put(file: string, content: FileContent, mode?: number): Promise<void> {
    const upload = randomUUID();
    let offset = 0;
    try {
      for await (const { bytes, last } of chunksOf(content, chunkBytes)) {
        const data = bytes.toString("base64");
        await this.#ask(file, "write_file", { upload, path: file, data, offset, last, mode: mode ?? null });
        offset += bytes.length;
      }
    } catch (error) {
      if (offset > 0) await this.#tidy("drop_upload", { upload });
      throw error;
    }
  }

  async move(from: string, to: string): Promise<void> {
    await this.#ask(from, "move_file", { path: from, to });
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#ask(path, "make_directory", { path });
  }

  async remove(file: string): Promise<void> {
    await this.#ask(file, "remove_file", { path: file });
  }

  async #ask(given: string, name: string, parameters: object): Promise<unknown> {
    try {
      return await (await this.#helper()).step(name, parameters);
    } catch (error) {
      if (error instanceof KernelLostError) throw lost(given, error);
      throw FencedError.isInstance(error) ? namedError(error, given) : error;
    }
  }

  /** Whatever this leaves behind in the kernel disappears with the kernel. */
  async #tidy(name: string, parameters: object): Promise<void> {
    await this.#helper().then(
      (helper) => helper.demand(name, parameters),
      () => undefined,
    );
  }
}

/** What the helper reports about a file; `undefined` if that is not plausible. */
function fileInfo(value: unknown): FileEntry | undefined {
  const path = textField(value, "path");
  const size = field(value, "size");
  if (path === "" || typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) return undefined;
  try {
    const type = field(value, "directory") === true ? "directory" : "file";
    return normalizeWorkspacePath(path) === path ? { path, type, size } : undefined;
  } catch {
    return undefined;
  }
}

/** The same error, with the path in its message. */
function namedError(error: FencedError, given: string): FencedError {
  const name = JSON.stringify(given);
  const options = { remedy: error.remedy, cause: error };
  if (WorkspacePathError.isInstance(error)) return new WorkspacePathError(`${name} is not in the workspace`, options);
  if (FileNotFoundError.isInstance(error)) return new FileNotFoundError(`There is no file ${name}`, options);
  if (InvalidInputError.isInstance(error)) return new InvalidInputError(`${name}: ${error.message}`, options);
  return error;
}

function strange(given: string): BackendUnavailableError {
  return new BackendUnavailableError(`The kernel sent an invalid answer about ${JSON.stringify(given)}`, {
    remedy: "Code in the kernel may have changed Fenced's helper there: call `restart()` for a new kernel.",
  });
}

function lost(given: string, cause: KernelLostError): BackendUnavailableError {
  return new BackendUnavailableError(`${JSON.stringify(given)} cannot be reached: ${cause.end.reason}`, {
    remedy: "Call again to start a new kernel.",
    cause,
  });
}
