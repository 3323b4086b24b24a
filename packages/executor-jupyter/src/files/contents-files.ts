import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import {
  BackendUnavailableError,
  FileNotFoundError,
  InvalidInputError,
  type FileInfo,
  type WorkspaceFiles,
} from "@fenced/core";
import { normalizeWorkspacePath } from "@fenced/executor-kit";
import type { Response } from "undici";
import { field, textField } from "../fields.ts";
import type { ServerClient } from "../servers/server-client.ts";
import { fileIn } from "./file-in.ts";
import { assertLocalFiles } from "./local-files.ts";

/** Bytes that travel in one request. */
const chunkBytes = 4_194_304;
const transferDeadlineMs = 600_000;
/** Links in a circle make a tree without an end. Systems themselves follow some forty links and no more. */
const deepest = 32;

/**
 * The workspace of a kernel that is not Python, reached through the server's contents API. The server decides what it
 * shows: hidden files it usually does not, and it follows symbolic links wherever they lead.
 */
export class ContentsFiles implements WorkspaceFiles {
  /** The workspace, relative to the server's root directory; empty: that directory. */
  readonly directory: string;
  readonly #client: () => ServerClient;

  constructor(client: () => ServerClient, directory: string) {
    this.#client = client;
    this.directory = directory.replaceAll(/^\/+|\/+$/g, "");
  }

  /** Whether a server has a contents API. */
  static async areOn(client: ServerClient): Promise<boolean> {
    const response = await client.send("api/contents/?content=0");
    await response.body?.cancel();
    return response.ok;
  }

  /** Makes the workspace, if it is not there. */
  async make(): Promise<void> {
    if (this.directory !== "") await this.#makeDirectories(this.directory.split("/"), this.directory, "");
  }

  /** Deletes the workspace with all that is in it, if the server does that; one that is gone already is fine. */
  async discard(): Promise<void> {
    await this.#delete(".", this.directory).catch((error: unknown) => {
      if (!FileNotFoundError.isInstance(error)) throw error;
    });
  }

  async list(directory = "."): Promise<FileInfo[]> {
    const found: FileInfo[] = [];
    const first = normalizeWorkspacePath(directory);
    const waiting = [first];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (const child of await this.#childrenOf(next, directory, next === first)) {
        const below = childOf(next, child.name);
        if (child.type === "directory") waiting.push(below);
        else found.push({ path: below, size: child.size });
      }
    }
    return found.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  async read(file: string): Promise<Uint8Array> {
    const response = await this.#raw(file);
    return new Uint8Array(await this.#client().received(response.arrayBuffer()));
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    const bytes =
      typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    await this.#send(fileIn(file), file, bytes.length, pieces(bytes));
  }

  async remove(file: string): Promise<void> {
    const normal = normalizeWorkspacePath(file);
    if (normal === ".") {
      throw new InvalidInputError("The workspace itself cannot be removed", {
        remedy: "Name a file or directory in it.",
      });
    }
    await this.#delete(normal, file);
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    await assertLocalFiles(localPaths);
    for (const local of localPaths) {
      const name = path.basename(local);
      const { size } = await stat(local);
      await this.#send(name, name, size, createReadStream(local, { highWaterMark: chunkBytes }));
    }
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const copy = path.resolve(toDirectory, fileIn(file));
      const response = await this.#raw(file);
      await mkdir(path.dirname(copy), { recursive: true });
      await pipeline(this.#bytesOf(response), createWriteStream(copy));
      copies.push(copy);
    }
    return copies;
  }

  /** Sends a file, in one request if it is small, else piece by piece. */
  async #send(normal: string, given: string, size: number, bytes: AsyncIterable<unknown>): Promise<void> {
    await this.#makeDirectories(normal.split("/").slice(0, -1), given);
    const file = (piece: Buffer) => ({ type: "file", format: "base64", content: piece.toString("base64") });
    let sent = 0;
    let chunk = 0;
    for await (const piece of bytes) {
      if (!Buffer.isBuffer(piece)) continue;
      sent += piece.length;
      chunk = sent >= size ? -1 : chunk + 1;
      await this.#put(normal, given, sent === piece.length && chunk === -1 ? file(piece) : { ...file(piece), chunk });
    }
    if (sent === 0) await this.#put(normal, given, file(Buffer.alloc(0)));
  }

  /** What is in a directory; nothing in one below the first that has gone meanwhile. */
  async #childrenOf(directory: string, given: string, isFirst: boolean): Promise<readonly Entry[]> {
    try {
      const { type, children } = await this.#get(directory, given);
      if (type !== "directory") throw notFound(given);
      return children;
    } catch (error) {
      if (isFirst || !FileNotFoundError.isInstance(error)) throw error;
      return [];
    }
  }

  /**
   * A directory that the server does not take whole stays: the API shows a link to one as a directory, and what is in it
   * may be somebody else's.
   */
  async #delete(normal: string, given: string): Promise<void> {
    const response = await this.#client().send(this.#url(normal), { method: "DELETE" });
    if (!response.ok) throw await this.#problem(response, given);
    await response.body?.cancel();
  }

  /** The file's bytes as they are, which servers give outside the contents API. */
  async #raw(file: string): Promise<Response> {
    const url = `files/${this.#encoded(fileIn(file))}`;
    const response = await this.#client().send(url, { deadlineMs: transferDeadlineMs });
    if (response.ok) return response;
    const problem = await this.#problem(response, file);
    if (FileNotFoundError.isInstance(problem)) throw problem;
    if ((await this.#get(fileIn(file), file).catch(() => undefined))?.type !== "directory") throw problem;
    throw new InvalidInputError(`${JSON.stringify(file)} is a directory`, { remedy: "Name a file.", cause: problem });
  }

  async *#bytesOf({ body }: Response): AsyncGenerator<Uint8Array, void, void> {
    if (!body) return;
    const reader = body.getReader();
    for (;;) {
      const step: { readonly done: boolean; readonly value?: unknown } = await this.#client().received(reader.read());
      if (step.done) return;
      if (step.value instanceof Uint8Array) yield step.value;
    }
  }

  async #get(normal: string, given: string): Promise<Entry & { readonly children: readonly Entry[] }> {
    const response = await this.#client().send(`${this.#url(normal)}?content=1`);
    if (!response.ok) throw await this.#problem(response, given);
    const model = await this.#client().received(response.json());
    const content = field(model, "content");
    return { ...entryOf(model), children: Array.isArray(content) ? content.map(entryOf) : [] };
  }

  async #put(normal: string, given: string, json: object, directory?: string): Promise<void> {
    const url = this.#url(normal, directory);
    const response = await this.#client().send(url, { method: "PUT", json, deadlineMs: transferDeadlineMs });
    if (!response.ok) throw await this.#problem(response, given);
    await response.body?.cancel();
  }

  /** @param directory - where they are made. Default: the workspace. */
  async #makeDirectories(names: readonly string[], given: string, directory?: string): Promise<void> {
    for (const [index] of names.entries()) {
      await this.#put(names.slice(0, index + 1).join("/"), given, { type: "directory" }, directory);
    }
  }

  async #problem(response: Response, given: string): Promise<Error> {
    const name = JSON.stringify(given);
    if (response.status === 404 && (await ContentsFiles.areOn(this.#client()))) {
      await response.body?.cancel();
      return notFound(given);
    }
    const refusal = await this.#client().refusal("api/contents", response);
    if (await ContentsFiles.areOn(this.#client())) {
      return new BackendUnavailableError(`The server refuses ${name}: ${refusal.message}`, {
        remedy:
          "Its contents API takes no hidden files, unless it was started with --ContentsManager.allow_hidden=True. " +
          "Without a trash it deletes only empty directories, unless --FileContentsManager.always_delete_dir=True, and no links to directories.",
        cause: refusal,
      });
    }
    return new BackendUnavailableError(`The server has no contents API, so that ${name} cannot be reached`, {
      remedy: "Use a Python kernel, whose files need none, or a Jupyter server instead of a kernel gateway.",
      cause: refusal,
    });
  }

  #url(normal: string, directory?: string): string {
    return `api/contents/${this.#encoded(normal, directory)}`;
  }

  #encoded(normal: string, directory = this.directory): string {
    const whole = path.posix.join(directory, normal);
    return whole === "." ? "" : whole.split("/").map(encodeURIComponent).join("/");
  }
}

interface Entry {
  readonly name: string;
  readonly type: string;
  readonly size: number;
}

function entryOf(model: unknown): Entry {
  return { name: textField(model, "name"), type: textField(model, "type"), size: Number(field(model, "size") ?? 0) };
}

async function* pieces(bytes: Buffer): AsyncGenerator<Buffer, void, void> {
  for (let start = 0; start < bytes.length; start += chunkBytes) yield bytes.subarray(start, start + chunkBytes);
}

/** @throws BackendUnavailableError if it is too deep to be real. */
function childOf(directory: string, name: string): string {
  const child = path.posix.join(directory, name);
  if (child.split("/").length <= deepest) return child;
  throw new BackendUnavailableError(
    `The workspace is more than ${deepest} directories deep at ${JSON.stringify(child)}`,
    {
      remedy: "Symbolic links may lead in a circle, which the contents API follows: remove them.",
    },
  );
}

function notFound(given: string): FileNotFoundError {
  return new FileNotFoundError(`There is no file ${JSON.stringify(given)} in the workspace`, {
    remedy: "`files.list()` says which files there are.",
  });
}
