import { randomUUID } from "node:crypto";
import path from "node:path";
import {
  BackendUnavailableError,
  FileNotFoundError,
  InvalidInputError,
  type FileEntry,
  type FileFeature,
  type FileStat,
  type ListOptions,
} from "@fenced/core";
import {
  inTheWayOf,
  modifiedAt,
  normalizeWorkspacePath,
  RemoteFiles,
  type FileContent,
  type RemoteFileAccess,
} from "@fenced/executor-kit";
import type { Response } from "undici";
import { field, textField } from "../fields.ts";
import type { ServerClient } from "../servers/server-client.ts";
import { chunksOf } from "./chunks.ts";

/** Maximum bytes of content in one request. */
const chunkBytes = 4_194_304;
const transferDeadlineMs = 600_000;
/** Circular links make an endless tree; operating systems follow only about forty links themselves. */
const deepest = 32;
/** How long one listing may take, in milliseconds: each directory is a request. */
const listDeadlineMs = 120_000;
/** Prefix of a file's name while its pieces arrive. */
const uploadPrefix = "fenced-upload-";

/**
 * The workspace of a kernel that is not Python, reached through the server's contents API. The server decides what it
 * shows: it usually leaves out hidden files, and follows symbolic links wherever they lead.
 */
export class ContentsFiles extends RemoteFiles {
  /** The workspace, relative to the server's root directory; empty: that directory. */
  readonly directory: string;
  /** Deleted with the session. */
  readonly isOwn: boolean;
  readonly #access: ContentsAccess;

  private constructor(access: ContentsAccess, isOwn: boolean) {
    super(access, (file) => path.posix.basename(file).startsWith(uploadPrefix));
    this.#access = access;
    this.directory = access.directory;
    this.isOwn = isOwn;
  }

  /** The files of an existing directory. */
  static in(client: () => ServerClient, directory: string): ContentsFiles {
    return new ContentsFiles(new ContentsAccess(client, directory), false);
  }

  /**
   * Creates the directory in which to start a kernel other than Python. A kernel gateway cannot create one; it chooses
   * where the kernel starts.
   *
   * @param given - relative to the server's root directory.
   * @param own - the directory's name if `given` is missing.
   */
  static async open(
    client: () => ServerClient,
    { given, own }: { readonly given: string | undefined; readonly own: string },
  ): Promise<ContentsFiles> {
    if (given?.startsWith("/") === true) {
      throw new InvalidInputError(`The workDir ${JSON.stringify(given)} is absolute`, {
        remedy: "For kernels other than Python, give it relative to the server's root directory.",
      });
    }
    if (given === undefined && !(await hasContents(client()))) return ContentsFiles.in(client, "");
    const directory = normalizeWorkspacePath(given ?? own).replace(/^\.$/, "");
    if (directory !== "") await new ContentsAccess(client, "").makeDirectories(directory.split("/"), directory);
    return new ContentsFiles(new ContentsAccess(client, directory), given === undefined);
  }

  /** Deletes the workspace and everything in it, if the server can; does nothing if it is already gone. */
  async discard(): Promise<void> {
    await this.#access.remove(".").catch((error: unknown) => {
      if (!FileNotFoundError.isInstance(error)) throw error;
    });
  }
}

class ContentsAccess implements RemoteFileAccess {
  readonly measurable = true;
  readonly features: readonly FileFeature[] = ["directories"];
  readonly directory: string;
  readonly #client: () => ServerClient;

  constructor(client: () => ServerClient, directory: string) {
    this.#client = client;
    this.directory = directory.replaceAll(/^\/+|\/+$/g, "");
  }

  async makeDirectories(names: readonly string[], given: string): Promise<void> {
    for (const [index] of names.entries()) {
      await this.#put(names.slice(0, index + 1).join("/"), given, { type: "directory" });
    }
  }

  async *list(directory: string, { recursive = true }: ListOptions = {}): AsyncGenerator<FileEntry, void, void> {
    const giveUp = performance.now() + listDeadlineMs;
    const waiting = [directory];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (performance.now() > giveUp) throw tooSlow(directory);
      for (const child of await this.#childrenOf(next, directory)) {
        const below = childOf(next, child.name);
        if (child.type !== "directory") {
          yield { path: below, type: "file", size: child.size };
          continue;
        }
        if (recursive) waiting.push(below);
        yield { path: below, type: "directory", size: 0 };
      }
    }
  }

  async stat(file: string): Promise<FileStat> {
    const model = await this.#model(file, 0);
    const size = field(model, "size");
    const isDirectory = textField(model, "type") === "directory";
    return {
      path: file,
      type: isDirectory ? "directory" : "file",
      size: !isDirectory && typeof size === "number" && size >= 0 ? size : 0,
      ...modifiedAt(Date.parse(textField(model, "last_modified"))),
    };
  }

  /** The file's raw bytes, which servers provide outside the contents API. */
  async *content(file: string): AsyncGenerator<Uint8Array, void, void> {
    const url = `files/${this.#encoded(file)}`;
    const response = await this.#client().send(url, { deadlineMs: transferDeadlineMs });
    if (!response.ok) throw await this.#noContent(response, file);
    yield* this.#client().body(response);
  }

  /** A file sent in several pieces gets its name once all of them have arrived. */
  async put(file: string, content: FileContent): Promise<void> {
    await this.makeDirectories(file.split("/").slice(0, -1), file);
    const upload = path.posix.join(path.posix.dirname(file), `${uploadPrefix}${randomUUID()}`);
    let chunk = 0;
    try {
      for await (const { bytes, last } of chunksOf(content, chunkBytes)) {
        chunk += 1;
        const model = { type: "file", format: "base64", content: bytes.toString("base64") };
        if (last && chunk === 1) await this.#put(file, file, model);
        else await this.#put(upload, file, { ...model, chunk: last ? -1 : chunk });
      }
      if (chunk > 1) await this.#replace(file, upload);
    } catch (error) {
      if (chunk > 1) await this.remove(upload).catch(() => {});
      throw error;
    }
  }

  async move(from: string, to: string): Promise<void> {
    const moved = await this.stat(from);
    const replaced = await this.stat(to).catch((error: unknown) => {
      if (!FileNotFoundError.isInstance(error)) throw error;
      return undefined;
    });
    if (from === to) return;
    if (replaced?.type === "directory" || (replaced && moved.type === "directory")) throw inTheWayOf(to);
    await this.makeDirectories(to.split("/").slice(0, -1), to);
    await this.#replace(to, from);
  }

  async makeDirectory(directory: string): Promise<void> {
    await this.makeDirectories(directory.split("/"), directory);
  }

  /**
   * A directory that the server does not delete as a whole stays: the API shows a link to a directory as a directory,
   * and its contents may belong to someone else.
   */
  async remove(file: string): Promise<void> {
    await this.#accept(file, await this.#client().send(this.#url(file), { method: "DELETE" }));
  }

  /**
   * Renames a file or directory. The API does not rename to an existing name, so what has it gets another one until that
   * is done.
   */
  async #replace(file: string, from: string): Promise<void> {
    const response = await this.#rename(from, file);
    if (response.status !== 409) return this.#accept(file, response);
    await response.body?.cancel();
    const old = path.posix.join(path.posix.dirname(file), `${uploadPrefix}${randomUUID()}`);
    await this.#accept(file, await this.#rename(file, old));
    try {
      await this.#accept(file, await this.#rename(from, file));
    } catch (error) {
      const back = await this.#rename(old, file).catch(() => undefined);
      await back?.body?.cancel();
      throw error;
    }
    // The file has been replaced, even if the old one stays, which is not listed.
    await this.remove(old).catch(() => {});
  }

  #rename(from: string, to: string): Promise<Response> {
    const json = { path: path.posix.join(this.directory, to) };
    return this.#client().send(this.#url(from), { method: "PATCH", json, deadlineMs: transferDeadlineMs });
  }

  /** A directory's entries; empty if it is below `first` and has since been deleted. */
  async #childrenOf(directory: string, first: string): Promise<readonly Entry[]> {
    try {
      const { type, children } = await this.#get(directory);
      if (type !== "directory") throw notFound(directory);
      return children;
    } catch (error) {
      if (directory === first || !FileNotFoundError.isInstance(error)) throw error;
      return [];
    }
  }

  async #noContent(response: Response, file: string): Promise<Error> {
    const problem = await this.#problem(response, file);
    if (FileNotFoundError.isInstance(problem)) return problem;
    const isDirectory = (await this.#get(file).catch(() => undefined))?.type === "directory";
    return isDirectory ? notAFile(file) : problem;
  }

  async #get(file: string): Promise<{ readonly type: string; readonly children: readonly Entry[] }> {
    const model = await this.#model(file, 1);
    const content = field(model, "content");
    const children = Array.isArray(content) ? content.map(entryOf).filter((each) => each !== undefined) : [];
    return { type: textField(model, "type"), children };
  }

  async #model(file: string, content: 0 | 1): Promise<unknown> {
    const response = await this.#client().send(`${this.#url(file)}?content=${content}`);
    if (!response.ok) throw await this.#problem(response, file);
    return this.#client().receivedJson(response);
  }

  async #put(normal: string, given: string, json: object): Promise<void> {
    const request = { method: "PUT", json, deadlineMs: transferDeadlineMs } as const;
    await this.#accept(given, await this.#client().send(this.#url(normal), request));
  }

  /** Checks an answer whose content nobody needs. */
  async #accept(given: string, response: Response): Promise<void> {
    if (!response.ok) throw await this.#problem(response, given);
    await response.body?.cancel();
  }

  async #problem(response: Response, given: string): Promise<Error> {
    const name = JSON.stringify(given);
    if (response.status === 404 && (await hasContents(this.#client()))) {
      await response.body?.cancel();
      return notFound(given);
    }
    const refusal = await this.#client().refusal("api/contents", response);
    if (await hasContents(this.#client())) {
      return new BackendUnavailableError(`The server refused ${name}: ${refusal.message}`, {
        remedy:
          "To use hidden files, start the server with --ContentsManager.allow_hidden=True. To delete directories that are " +
          "not empty on a server without a trash, start it with --FileContentsManager.always_delete_dir=True, which never " +
          "deletes links to directories.",
        cause: refusal,
      });
    }
    return new BackendUnavailableError(`The server has no contents API, so ${name} cannot be reached`, {
      remedy: "Use a Python kernel, which does not need it, or a Jupyter server instead of a kernel gateway.",
      cause: refusal,
    });
  }

  #url(normal: string): string {
    return `api/contents/${this.#encoded(normal)}`;
  }

  #encoded(normal: string): string {
    const whole = path.posix.join(this.directory, normal);
    if (/\p{Surrogate}/u.test(whole)) {
      throw new InvalidInputError(`${JSON.stringify(normal)} is not a valid file name`, {
        remedy: "Remove the lone surrogates from it.",
      });
    }
    return whole === "." ? "" : whole.split("/").map(encodeURIComponent).join("/");
  }
}

interface Entry {
  readonly name: string;
  readonly type: string;
  readonly size: number;
}

async function hasContents(client: ServerClient): Promise<boolean> {
  const response = await client.send("api/contents/?content=0");
  await response.body?.cancel();
  return response.ok;
}

/** What the server reports about a child; `undefined` if its name is not valid. */
function entryOf(model: unknown): Entry | undefined {
  const name = textField(model, "name");
  const size = field(model, "size");
  if (name === "" || name === "." || name === ".." || name.includes("/")) return undefined;
  return { name, type: textField(model, "type"), size: typeof size === "number" && size >= 0 ? size : 0 };
}

function notAFile(file: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(file)} is a directory`, { remedy: "Pass the path of a file." });
}

/** @throws BackendUnavailableError if it is implausibly deep. */
function childOf(directory: string, name: string): string {
  const child = path.posix.join(directory, name);
  if (child.split("/").length <= deepest) return child;
  throw new BackendUnavailableError(
    `The workspace is more than ${deepest} directories deep at ${JSON.stringify(child)}`,
    {
      remedy: "Remove circular symbolic links, which the contents API follows endlessly.",
    },
  );
}

function tooSlow(directory: string): BackendUnavailableError {
  return new BackendUnavailableError(
    `Listing ${JSON.stringify(directory)} took longer than ${listDeadlineMs / 1000} seconds`,
    {
      remedy: "List a directory with fewer subdirectories.",
    },
  );
}

function notFound(given: string): FileNotFoundError {
  return new FileNotFoundError(`There is no file ${JSON.stringify(given)} in the workspace`, {
    remedy: "`files.list()` shows which files there are.",
  });
}
