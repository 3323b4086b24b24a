import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { FileNotFoundError, InvalidInputError, type FileInfo, type WorkspaceFiles } from "@fenced/core";
import { normalizeWorkspacePath } from "@fenced/executor-kit";
import { workspacePath } from "../container/container-options.ts";
import type { BlockRunner } from "../run/block-runner.ts";
import { type ContainerArchive, notAFile, notThere, type ArchiveEntry } from "./container-archive.ts";

/** The files of a work directory that is only in the container. */
export class TarFiles implements WorkspaceFiles {
  readonly #archive: ContainerArchive;
  readonly #runner: BlockRunner;
  readonly #isHidden: (relativePath: string) => boolean;

  /** @param isHidden - tells the executor's own files. */
  constructor(archive: ContainerArchive, runner: BlockRunner, isHidden: (relativePath: string) => boolean) {
    this.#archive = archive;
    this.#runner = runner;
    this.#isHidden = isHidden;
  }

  async list(directory = "."): Promise<FileInfo[]> {
    const place = await this.#archive.resolve(relativePath(directory), "follow");
    if ((await this.#archive.info(place))?.kind !== "directory") throw notThere(directory);
    const found: FileInfo[] = [];
    const top = path.posix.relative(workspacePath, path.posix.dirname(place));
    for await (const { header } of this.#archive.entries(place)) {
      const file = place === workspacePath ? belowTop(header.name) : path.posix.join(top, header.name);
      if (header.type === "file" && !this.#isHidden(file)) found.push({ path: file, size: header.size });
    }
    return found.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  async read(file: string): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.#content(file)) chunks.push(chunk);
    return new Uint8Array(Buffer.concat(chunks));
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    await this.#put(file, bytes.length, [bytes]);
  }

  async remove(file: string): Promise<void> {
    const relative = relativePath(file);
    if (relative === ".") {
      throw new InvalidInputError("The workspace itself cannot be removed", {
        remedy: "Name a file or directory in it.",
      });
    }
    const place = await this.#archive.resolve(relative, "keep");
    if (!(await this.#archive.info(place))) throw notThere(file);
    await removeInContainer(this.#runner, place);
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    const sizes: number[] = [];
    for (const local of localPaths) sizes.push(await sizeOfLocal(local));
    for (const [index, local] of localPaths.entries()) {
      await this.#put(path.basename(local), sizes[index] ?? 0, createReadStream(local));
    }
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const copy = path.resolve(toDirectory, relativePath(file));
      await this.#place(file);
      await mkdir(path.dirname(copy), { recursive: true });
      await pipeline(this.#content(file), createWriteStream(copy));
      copies.push(copy);
    }
    return copies;
  }

  /** Where a regular file really is. */
  async #place(file: string): Promise<string> {
    const place = await this.#archive.resolve(relativePath(file), "follow");
    const info = await this.#archive.info(place);
    if (!info) throw notThere(file);
    if (info.kind !== "file") throw notAFile(file);
    return place;
  }

  async *#content(file: string): AsyncGenerator<Uint8Array, void, void> {
    for await (const { content } of this.#archive.entries(await this.#place(file))) {
      for await (const chunk of content) if (chunk instanceof Uint8Array) yield chunk;
    }
  }

  async #put(file: string, size: number, chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    const place = await this.#archive.resolve(relativePath(file), "follow");
    const parts = path.posix.relative(workspacePath, place).split("/");
    const entries: ArchiveEntry[] = [];
    for (let depth = 1; depth < parts.length; depth += 1) {
      const directory = parts.slice(0, depth).join("/");
      const info = await this.#archive.info(`${workspacePath}/${directory}`);
      if (!info) entries.push({ name: directory });
      else if (info.kind !== "directory") throw notThere(file);
    }
    const info = await this.#archive.info(place);
    if (place === workspacePath || (info && info.kind !== "file")) throw notAFile(file);
    await this.#archive.put(workspacePath, [...entries, { name: parts.join("/"), content: { size, chunks } }]);
  }
}

/** Removes a file or directory by a program in the container, as the daemon's API cannot. */
export async function removeInContainer(runner: BlockRunner, place: string): Promise<void> {
  const { programs } = runner.inventory;
  const remove = programs.get("rm");
  const python = programs.get("python3") ?? programs.get("python") ?? "python3";
  const code =
    "import os, shutil, sys\np = sys.argv[1]\nshutil.rmtree(p) if os.path.isdir(p) and not os.path.islink(p) else os.remove(p)";
  const argv = remove === undefined ? [python, "-c", code, place] : [remove, "-rf", "--", place];
  let said = "";
  for (const events = runner.run({ argv, env: {}, signal: new AbortController().signal }); ;) {
    const { value, done } = await events.next();
    if (done === true && value.exitCode === 0) return;
    if (done === true) {
      throw new InvalidInputError(`${place} could not be removed: ${said.trim()}`, {
        remedy: "See whether the user that the code runs as may remove it.",
      });
    }
    if ("data" in value) said += String(value.data);
  }
}

/** @throws InvalidInputError for a name that no file system takes; the daemon would only say that it failed. */
function relativePath(given: string): string {
  const relative = normalizeWorkspacePath(given);
  if (relative.split("/").every((part) => Buffer.byteLength(part) <= longestName)) return relative;
  throw new InvalidInputError(`The file system takes no such name: ${JSON.stringify(given.slice(0, 100))}`, {
    remedy: "Use a shorter name of ordinary characters.",
  });
}

/** Bytes of a file's name, on Linux. */
const longestName = 255;

/** An entry's name without the directory that the archive begins with. */
export function belowTop(name: string): string {
  return name.replace(/^[^/]*\/?/, "");
}

async function sizeOfLocal(local: string): Promise<number> {
  const stats = await stat(local).catch((cause: unknown) => {
    throw new FileNotFoundError(`There is no local file ${JSON.stringify(local)} to upload`, {
      remedy: "Check the path; nothing was uploaded.",
      cause,
    });
  });
  if (stats.isFile()) return stats.size;
  throw new InvalidInputError(`${JSON.stringify(local)} is not a regular file`, {
    remedy: "Upload files one by one; nothing was uploaded.",
  });
}
