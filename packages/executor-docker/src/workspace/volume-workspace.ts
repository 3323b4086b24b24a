import path from "node:path";
import { finished } from "node:stream/promises";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import type { Container, DockerClient } from "@fenced/docker-daemon";
import {
  RemoteFiles,
  blockSource,
  diskFull,
  type BackendFiles,
  type BlockRun,
  type DirectoryFiles,
  type FileContent,
  type SessionDirectories,
} from "@fenced/executor-kit";
import type { BlockFile } from "@fenced/executor-kit/supervisor";
import { workspacePath } from "../container/container-options.ts";
import type { ContainerWorkspace } from "../container/container-place.ts";
import type { RunningContainer } from "../container/running-container.ts";
import { ArchiveAccess, belowTop, hasOwnName, removeInContainer } from "./archive-access.ts";
import { ContainerArchive, contentOf, type ArchiveEntry } from "./container-archive.ts";

/**
 * A work directory that this host cannot see: a volume of a remote daemon. Files travel as tar archives. If the user
 * gave a directory, it is copied there at the start, and its changes are copied back after each block.
 */
export class VolumeWorkspace implements ContainerWorkspace {
  readonly files: BackendFiles;
  readonly #container: Container;
  readonly #archive: ContainerArchive;
  readonly #running: RunningContainer;
  readonly #directories: SessionDirectories;
  readonly #hostFiles: DirectoryFiles;
  /** Files that exist on both sides, with their state when they were copied. */
  readonly #copied = new Map<string, string>();
  #settling: Promise<string | undefined> = Promise.resolve(undefined);
  #waiting: Promise<string | undefined> | undefined;

  constructor(docker: DockerClient, container: RunningContainer, directories: SessionDirectories) {
    this.#container = docker.getContainer(container.id);
    this.#archive = new ContainerArchive(this.#container, container.inventory.owner);
    this.#running = container;
    this.#directories = directories;
    const isOwn = (file: string): boolean => directories.isOwn(file);
    this.files = new RemoteFiles(new ArchiveAccess(this.#archive, container), isOwn);
    this.#hostFiles = directories.files();
  }

  /** Makes the directory writable for the user that blocks run as, and copies the user's directory into it. */
  async prepare(): Promise<void> {
    await this.#claim();
    const entries: ArchiveEntry[] = [];
    const listed = this.#directories.given ? await this.#hostFiles.list() : [];
    const files = listed.filter(({ path: file }) => hasOwnName(file));
    const directories = new Set(files.flatMap(({ path: file }) => parentsOf(file)));
    entries.push(...[...directories].map((name) => ({ name })));
    for (const { path: file, size } of files) entries.push({ name: file, content: this.#onHost(file, size) });
    await this.#archive.put(workspacePath, entries);
    await this.settle();
  }

  /** Reads the file through descriptors, because another executor's code may use the same directory. */
  #onHost(file: string, size: number): FileContent {
    return { size, [Symbol.asyncIterator]: () => firstBytes(this.#hostFiles.content(file), size) };
  }

  /** Changes the owner of a new volume, which belongs to root. */
  async #claim(): Promise<void> {
    try {
      await this.#archive.put("/", [{ name: workspacePath.slice(1) }]);
    } catch {
      // Fails if the root file system is read-only, since the archive goes to `/`; root then makes the volume writable
      // for all users.
      const exec = await this.#container.exec({
        Cmd: ["chmod", "1777", workspacePath],
        User: "0:0",
        AttachStdout: true,
      });
      const stream = await exec.start({ hijack: true });
      await finished(stream.resume()).catch(() => {});
    }
  }

  async writeBlock({ language, code, filename }: BlockRun, extension: string): Promise<BlockFile> {
    const source = blockSource(language, code);
    if (filename === undefined) return this.#writeOwn(source, extension);
    await this.files.write(filename, source);
    const onHost = path.join(this.#directories.workDirectory, filename);
    return { path: `${workspacePath}/${filename}`, ...(this.#directories.given ? { onHost } : {}) };
  }

  async #writeOwn(source: string, extension: string): Promise<BlockFile> {
    const name = this.#directories.newName(extension);
    try {
      await this.#archive.put(workspacePath, [{ name, content: contentOf(Buffer.from(source)) }]);
    } catch (cause) {
      if (FencedError.isInstance(cause)) throw cause;
      if (/no space left|disk quota exceeded/i.test(String(cause))) throw diskFull("the block");
      throw new BackendUnavailableError(`The block could not be written to the work directory: ${String(cause)}`, {
        remedy: "Check that the directory is writable.",
        cause,
      });
    }
    return { path: `${workspacePath}/${name}` };
  }

  async removeBlock({ path: file }: BlockFile): Promise<void> {
    await removeInContainer(this.#running, file);
  }

  async settle(): Promise<string | undefined> {
    if (!this.#directories.given) return undefined;
    // A block that ends during a copy waits for the next copy, together with all others that end meanwhile.
    this.#waiting ??= this.#settling.then(() => {
      this.#waiting = undefined;
      this.#settling = this.#copyBack();
      return this.#settling;
    });
    return this.#waiting;
  }

  /**
   * Copies what has changed; returns a sentence about what was not copied. Never rejects, since the block's result
   * matters more.
   */
  async #copyBack(): Promise<string | undefined> {
    const seen = new Set<string>();
    const left: string[] = [];
    let room = mostCopied;
    let nameless = 0;
    try {
      for await (const { header, content } of this.#archive.entries(workspacePath, copyMs)) {
        const file = belowTop(header.name);
        if (header.type !== "file" || this.#directories.isOwn(file)) continue;
        if (!hasOwnName(file)) {
          nameless += 1;
          if (nameless > mostFiles) throw new Error(`there are more than ${mostFiles} files`);
          continue;
        }
        const [size, changed] = [header.size, header.mtime.getTime()];
        seen.add(file);
        if (seen.size > mostFiles) throw new Error(`there are more than ${mostFiles} files`);
        const state = `${size} ${changed}`;
        if (this.#copied.get(file) === state) continue;
        if (size > room) {
          left.push(`${file} (${Math.ceil(size / 1_048_576)} MiB)`);
          continue;
        }
        room -= size;
        await this.#hostFiles.put(file, content);
        // Tar stores whole seconds only, so a recent file may change again without looking different.
        this.#copied.set(file, Date.now() - changed > youngMs ? state : "young");
      }
    } catch (error) {
      return notCopied(`not all files were copied: ${error instanceof Error ? error.message : String(error)}`);
    }
    for (const file of this.#copied.keys()) {
      if (seen.has(file)) continue;
      this.#copied.delete(file);
      await this.#hostFiles.remove(file).catch(() => {});
    }
    const problems: string[] = [];
    if (left.length > 0) {
      const names = left.slice(0, 5).join(", ") + (left.length > 5 ? ` and ${left.length - 5} more` : "");
      problems.push(`${names} did not fit into the ${mostCopied / 1_048_576} MiB that are copied after a block`);
    }
    if (nameless > 0) problems.push(`files whose names are not UTF-8 cannot be copied (${nameless}); rename them`);
    return problems.length === 0 ? undefined : notCopied(problems.join("; "));
  }
}

/**
 * Maximum bytes that one copy brings to the host; the code decides how much there is, and a sparse file costs it
 * nothing.
 */
const mostCopied = 536_870_912;
/** Maximum number of files that one copy looks at. */
const mostFiles = 200_000;
/** Time limit for one copy in milliseconds. */
const copyMs = 120_000;
const youngMs = 10_000;

function parentsOf(file: string): string[] {
  const parts = file.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function notCopied(problem: string): string {
  return `\nThe work directory is not up to date: ${problem}. Remove what is not needed, or write it to /tmp.\n`;
}

async function* firstBytes(chunks: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array, void, void> {
  let left = size;
  for await (const chunk of chunks) {
    const piece = chunk.subarray(0, left);
    left -= piece.length;
    if (piece.length > 0) yield piece;
    if (left === 0) return;
  }
}
