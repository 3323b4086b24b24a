import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
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
import { assertLocalFiles } from "./local-files.ts";

/** Bytes that travel in one request when a large file is uploaded. */
const chunkBytes = 4_194_304;
const transferDeadlineMs = 600_000;

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

  async list(directory = "."): Promise<FileInfo[]> {
    const found = await this.#walk(normalizeWorkspacePath(directory), directory);
    return found.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  async read(file: string): Promise<Uint8Array> {
    const response = await this.#raw(file);
    return new Uint8Array(await response.arrayBuffer());
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    const normal = normalizeWorkspacePath(file);
    await this.#makeParents(normal);
    const content = Buffer.from(data).toString("base64");
    await this.#put(normal, { type: "file", format: "base64", content });
  }

  async remove(file: string): Promise<void> {
    const normal = normalizeWorkspacePath(file);
    if (normal === ".") {
      throw new InvalidInputError("The workspace itself cannot be removed", {
        remedy: "Name a file or directory in it.",
      });
    }
    const entry = await this.#get(normal, file);
    if (entry.type === "directory") {
      for (const child of entry.children) await this.remove(path.posix.join(normal, child.name));
    }
    const response = await this.#client().send(this.#url(normal), { method: "DELETE" });
    if (!response.ok) throw await this.#problem(response, file);
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    await assertLocalFiles(localPaths);
    for (const local of localPaths) await this.#uploadOne(local, path.basename(local));
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const copy = path.resolve(toDirectory, normalizeWorkspacePath(file));
      const response = await this.#raw(file);
      await mkdir(path.dirname(copy), { recursive: true });
      await pipeline(response.body ? Readable.fromWeb(response.body) : Readable.from([]), createWriteStream(copy));
      copies.push(copy);
    }
    return copies;
  }

  async #uploadOne(local: string, name: string): Promise<void> {
    const { size } = await stat(local);
    if (size <= chunkBytes) {
      await this.write(name, await readFile(local));
      return;
    }
    let sent = 0;
    let chunk = 0;
    for await (const bytes of createReadStream(local, { highWaterMark: chunkBytes })) {
      if (!Buffer.isBuffer(bytes)) continue;
      sent += bytes.length;
      chunk = sent >= size ? -1 : chunk + 1;
      await this.#put(name, { type: "file", format: "base64", content: bytes.toString("base64"), chunk });
    }
  }

  async #walk(directory: string, given: string): Promise<FileInfo[]> {
    const { type, children } = await this.#get(directory, given);
    if (type !== "directory") throw notFound(given);
    const found: FileInfo[] = [];
    for (const child of children) {
      const below = path.posix.join(directory, child.name);
      if (child.type === "directory") found.push(...(await this.#walk(below, given)));
      else found.push({ path: below, size: child.size });
    }
    return found;
  }

  /** The file's bytes as they are, which servers give outside the contents API. */
  async #raw(file: string): Promise<Response> {
    const normal = normalizeWorkspacePath(file);
    const url = `files/${this.#encoded(normal)}`;
    const response = await this.#client().send(url, { deadlineMs: transferDeadlineMs });
    if (!response.ok) throw await this.#problem(response, file);
    return response;
  }

  async #get(normal: string, given: string): Promise<Entry & { readonly children: readonly Entry[] }> {
    const response = await this.#client().send(`${this.#url(normal)}?content=1`);
    if (!response.ok) throw await this.#problem(response, given);
    const model: unknown = await response.json();
    const content = field(model, "content");
    return { ...entryOf(model), children: Array.isArray(content) ? content.map(entryOf) : [] };
  }

  async #put(normal: string, json: object): Promise<void> {
    await this.#client().json(this.#url(normal), { method: "PUT", json, deadlineMs: transferDeadlineMs });
  }

  async #makeParents(normal: string): Promise<void> {
    const parts = normal.split("/").slice(0, -1);
    for (const [index] of parts.entries()) {
      await this.#put(parts.slice(0, index + 1).join("/"), { type: "directory" });
    }
  }

  async #problem(response: Response, given: string): Promise<Error> {
    if (response.status === 404) {
      await response.body?.cancel();
      return notFound(given);
    }
    const refusal = await this.#client().refusal("api/contents", response);
    return new BackendUnavailableError(`The server does not give ${JSON.stringify(given)}: ${refusal.message}`, {
      remedy: "A kernel gateway has no contents API; use a Python kernel or a full Jupyter server.",
      cause: refusal,
    });
  }

  #url(normal: string): string {
    return `api/contents/${this.#encoded(normal)}`;
  }

  #encoded(normal: string): string {
    const whole = path.posix.join(this.directory, normal);
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

function notFound(given: string): FileNotFoundError {
  return new FileNotFoundError(`There is no file ${JSON.stringify(given)} in the workspace`, {
    remedy: "`files.list()` says which files there are.",
  });
}
