import { createReadStream } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import path from "node:path";
import {
  BackendUnavailableError,
  FencedError,
  InvalidInputError,
  type FileInfo,
  type WorkspaceFiles,
} from "@fenced/core";
import { normalizeWorkspacePath } from "@fenced/executor-kit";
import { field, textField } from "../fields.ts";
import { KernelLostError } from "../kernel/kernel-end.ts";
import type { PythonHelper } from "../python/python-helper.ts";
import { fileIn } from "./file-in.ts";
import { assertLocalFiles } from "./local-files.ts";
import { namedError } from "./named-error.ts";

/** Bytes that travel in one message; as base64 it fits into the 10 MiB that Jupyter servers take. */
const chunkBytes = 1_048_576;

/**
 * The workspace of a Python kernel, reached through the kernel itself: wherever it runs, and with its own eyes on
 * symbolic links, also while a block is running.
 */
export class KernelFiles implements WorkspaceFiles {
  readonly #helper: () => Promise<PythonHelper>;

  constructor(helper: () => Promise<PythonHelper>) {
    this.#helper = helper;
  }

  async list(directory = "."): Promise<FileInfo[]> {
    const answer = await this.#ask(directory, "list_files", { directory: normalizeWorkspacePath(directory) });
    const files = (Array.isArray(answer) ? answer : []).map((each: unknown) => ({
      path: textField(each, "path"),
      size: Number(field(each, "size")),
    }));
    return files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  async read(file: string): Promise<Uint8Array> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.#chunks(file)) chunks.push(chunk);
    return new Uint8Array(Buffer.concat(chunks));
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    const bytes =
      typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const normal = fileIn(file);
    for (let offset = 0; offset === 0 || offset < bytes.length; offset += chunkBytes) {
      await this.#append(file, normal, bytes.subarray(offset, offset + chunkBytes), offset > 0);
    }
  }

  async remove(file: string): Promise<void> {
    const normal = normalizeWorkspacePath(file);
    if (normal === ".") {
      throw new InvalidInputError("The workspace itself cannot be removed", {
        remedy: "Name a file or directory in it.",
      });
    }
    await this.#ask(file, "remove_file", { path: normal });
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    await assertLocalFiles(localPaths);
    for (const local of localPaths) {
      const name = path.basename(local);
      let append = false;
      for await (const chunk of createReadStream(local, { highWaterMark: chunkBytes })) {
        if (Buffer.isBuffer(chunk)) await this.#append(name, name, chunk, append);
        append = true;
      }
      if (!append) await this.write(name, "");
    }
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const copy = path.resolve(toDirectory, fileIn(file));
      const chunks = this.#chunks(file);
      // The first chunk comes before the file is made: one that is not there leaves nothing behind.
      const first = await chunks.next();
      await mkdir(path.dirname(copy), { recursive: true });
      await using handle = await open(copy, "w");
      for (let step = first; step.done !== true; step = await chunks.next()) await handle.write(step.value);
      copies.push(copy);
    }
    return copies;
  }

  async *#chunks(file: string): AsyncGenerator<Buffer, void, void> {
    const normal = fileIn(file);
    for (let offset = 0; ;) {
      const answer = await this.#ask(file, "read_file", { path: normal, offset, length: chunkBytes });
      const chunk = Buffer.from(textField(answer, "data"), "base64");
      yield chunk;
      if (field(answer, "end") === true) return;
      offset += chunk.length;
    }
  }

  async #append(given: string, normal: string, bytes: Buffer, append: boolean): Promise<void> {
    await this.#ask(given, "write_file", { path: normal, data: bytes.toString("base64"), append });
  }

  async #ask(given: string, name: string, parameters: object): Promise<unknown> {
    const helper = await this.#helper();
    try {
      return await helper.askAside(name, parameters);
    } catch (error) {
      if (error instanceof KernelLostError) throw lost(given, error);
      throw FencedError.isInstance(error) ? namedError(error, given) : error;
    }
  }
}

function lost(given: string, cause: KernelLostError): BackendUnavailableError {
  return new BackendUnavailableError(`${JSON.stringify(given)} cannot be reached: ${cause.end.reason}`, {
    remedy: "Call again: a new kernel is started then.",
    cause,
  });
}
