import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";
import { finished } from "node:stream/promises";
import type { WorkspaceFiles } from "@fenced/core";
import { DirectoryFiles } from "@fenced/executor-kit";
import type Docker from "dockerode";
import { workspacePath } from "../container/container-options.ts";
import type { BlockRunner } from "../run/block-runner.ts";
import type { BlockFile, BlockPlace } from "./block-place.ts";
import { ContainerArchive, type ArchiveEntry } from "./container-archive.ts";
import type { HostWorkspace } from "./host-workspace.ts";
import { belowTop, removeInContainer, TarFiles } from "./tar-files.ts";

/** Where the container is, and who runs programs in it. */
export interface ContainerSide {
  readonly docker: Docker;
  readonly id: string;
  readonly runner: BlockRunner;
}

/**
 * A work directory that this host cannot see: a volume of a daemon elsewhere. Files travel as tar archives. A directory
 * that the user gave is copied there at the start, and after each block what is there is copied back.
 */
export class VolumePlace implements BlockPlace {
  readonly kind = "volume";
  readonly files: WorkspaceFiles;
  readonly #container: Docker.Container;
  readonly #archive: ContainerArchive;
  readonly #runner: BlockRunner;
  readonly #workspace: HostWorkspace;
  readonly #hostFiles: DirectoryFiles;
  readonly #isOwn: (file: string) => boolean;
  /** The files that both sides have, as they were when they were copied. */
  readonly #copied = new Map<string, string>();
  #settling: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;

  /** @param isOwn - tells the executor's own files. */
  constructor({ docker, id, runner }: ContainerSide, workspace: HostWorkspace, isOwn: (file: string) => boolean) {
    this.#container = docker.getContainer(id);
    this.#archive = new ContainerArchive(this.#container, runner.inventory.owner);
    this.#runner = runner;
    this.#workspace = workspace;
    this.#isOwn = isOwn;
    this.files = new TarFiles(this.#archive, runner, isOwn);
    this.#hostFiles = new DirectoryFiles(workspace.workDirectory, isOwn);
  }

  /** Gives the directory to the user that blocks run as, and copies what the user's directory holds. */
  async prepare(): Promise<void> {
    await this.#claim();
    const entries: ArchiveEntry[] = [];
    const files = this.#workspace.given ? await this.#hostFiles.list() : [];
    const directories = new Set(files.flatMap(({ path: file }) => parentsOf(file)));
    entries.push(...[...directories].map((name) => ({ name })));
    for (const { path: file } of files) {
      const local = path.join(this.#workspace.workDirectory, file);
      const { size } = await stat(local);
      entries.push({ name: file, content: { size, chunks: createReadStream(local, { end: Math.max(0, size - 1) }) } });
    }
    await this.#archive.put(workspacePath, entries);
    await this.settle();
  }

  /** A fresh volume is root's. */
  async #claim(): Promise<void> {
    try {
      await this.#archive.put("/", [{ name: workspacePath.slice(1) }]);
    } catch {
      // Nothing can be put beside the volume if the rest of the file system is read-only; then root opens it to all.
      const exec = await this.#container.exec({
        Cmd: ["chmod", "1777", workspacePath],
        User: "0:0",
        AttachStdout: true,
      });
      const stream = await exec.start({ hijack: true });
      await finished(stream.resume()).catch(() => {});
    }
  }

  async writeBlock(source: string, extension: string, filename: string | undefined): Promise<BlockFile> {
    if (filename === undefined) {
      const name = `${this.#workspace.filePrefix}${randomUUID().slice(0, 12)}.${extension}`;
      const bytes = Buffer.from(source);
      await this.#archive.put(workspacePath, [{ name, content: { size: bytes.length, chunks: [bytes] } }]);
      return { inContainer: `${workspacePath}/${name}` };
    }
    await this.files.write(filename, source);
    const onHost = path.join(this.#workspace.workDirectory, filename);
    return { inContainer: `${workspacePath}/${filename}`, ...(this.#workspace.given ? { onHost } : {}) };
  }

  async removeBlock({ inContainer }: BlockFile): Promise<void> {
    await removeInContainer(this.#runner, inContainer);
  }

  async settle(): Promise<void> {
    if (!this.#workspace.given) return;
    // Whoever comes while a copy is made waits for the next one, and shares it with all who came meanwhile.
    this.#waiting ??= this.#settling
      .catch(() => {})
      .then(async () => {
        this.#waiting = undefined;
        this.#settling = this.#copyBack();
        await this.#settling;
      });
    await this.#waiting;
  }

  async #copyBack(): Promise<void> {
    const seen = new Set<string>();
    for await (const { header, content } of this.#archive.entries(workspacePath)) {
      const file = belowTop(header.name);
      if (header.type !== "file" || this.#isOwn(file)) continue;
      seen.add(file);
      const state = `${header.size} ${header.mtime.getTime()}`;
      if (this.#copied.get(file) === state) continue;
      const chunks: Uint8Array[] = [];
      for await (const chunk of content) if (chunk instanceof Uint8Array) chunks.push(chunk);
      await this.#hostFiles.write(file, Buffer.concat(chunks));
      // Tar knows whole seconds only: what is younger may change again without looking different.
      if (Date.now() - header.mtime.getTime() > youngMs) this.#copied.set(file, state);
      else this.#copied.set(file, "young");
    }
    for (const file of this.#copied.keys()) {
      if (seen.has(file)) continue;
      this.#copied.delete(file);
      await this.#hostFiles.remove(file).catch(() => {});
    }
  }
}

const youngMs = 10_000;

function parentsOf(file: string): string[] {
  const parts = file.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}
