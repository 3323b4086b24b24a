import { once } from "node:events";
import path from "node:path";
import { Readable } from "node:stream";
import { FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import type { FileOwner } from "@fenced/executor-kit";
import type Docker from "dockerode";
import { extract, pack, type Header, type Pack } from "tar-stream";
import { z } from "zod";
import { workspacePath } from "../container/container-options.ts";
import { isNotFound } from "../daemon/docker-error.ts";

/** What a path in a container is. */
export interface PathInfo {
  readonly kind: "file" | "directory" | "link" | "other";
  readonly size: number;
  /** Where a link leads to, an absolute path in the container. */
  readonly target: string;
}

/** One file or directory on its way into a container. */
export interface ArchiveEntry {
  /** Relative to the directory that the archive is put into. */
  readonly name: string;
  /** Missing: a directory. */
  readonly content?: { readonly size: number; readonly chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array> };
}

const statHeader = z.object({ size: z.number(), mode: z.number(), linkTarget: z.string() });
/** Bits of the mode as Go has it. */
const [goDirectory, goLink, goIrregular] = [0x8000_0000, 0x0800_0000, 0x8f28_0000];
/** How many links are followed before they are taken for a loop. */
const mostLinks = 40;

/** Files of a container's work directory, as the daemon hands them out and takes them: by tar archives. */
export class ContainerArchive {
  readonly #container: Docker.Container;
  readonly #owner: FileOwner;

  /** @param owner - whom what is written belongs to. */
  constructor(container: Docker.Container, owner: FileOwner) {
    this.#container = container;
    this.#owner = owner;
  }

  /**
   * Where a path in the workspace really is: an absolute path without links, but for its last part, which need not exist.
   *
   * @param relative - normalised.
   * @param last - whether the last part, too, is followed if it is a link.
   * @throws WorkspacePathError if a link on the way leads out of the workspace.
   */
  async resolve(relative: string, last: "follow" | "keep", followed = 0): Promise<string> {
    const parts = relative === "." ? [] : relative.split("/");
    let place = workspacePath;
    for (const [index, part] of parts.entries()) {
      place = `${place}/${part}`;
      if (last === "keep" && index === parts.length - 1) break;
      const info = await this.info(place);
      // The daemon would only say that it failed.
      const leaf = info?.kind === "file" || info?.kind === "other";
      if (leaf && index < parts.length - 1) throw notThere(relative);
      if (info?.kind !== "link") continue;
      const below = path.posix.relative(workspacePath, info.target);
      const outside = below.split("/")[0] === ".." || followed > mostLinks || !(await this.info(info.target));
      if (outside) throw leadsOut(relative);
      return this.resolve(path.posix.join(below || ".", ...parts.slice(index + 1)), last, followed + 1);
    }
    return place;
  }

  /** What an absolute path is, the last part of which is not followed; `undefined`: it is not there. */
  async info(absolute: string): Promise<PathInfo | undefined> {
    try {
      const answer: unknown = await this.#container.infoArchive({ path: absolute });
      return readInfo(answer);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** The entries of the archive of an absolute path, one after the other; each must be read or resumed. */
  async *entries(
    absolute: string,
  ): AsyncGenerator<{ readonly header: Header; readonly content: Readable }, void, void> {
    const stream = await this.#container.getArchive({ path: absolute });
    const extraction = extract();
    // What breaks the stream breaks the extraction, whose reader then hears of it.
    stream.on("error", (error: Error) => extraction.destroy(error));
    stream.pipe(extraction);
    try {
      for await (const entry of extraction) {
        if (!isEntry(entry)) continue;
        yield { header: entry.header, content: entry };
        entry.resume();
      }
    } finally {
      if (stream instanceof Readable) stream.destroy();
    }
  }

  /** Writes entries below an absolute path, which must exist. */
  async put(absolute: string, entries: Iterable<ArchiveEntry>): Promise<void> {
    const archive = pack();
    const writing = this.#write(archive, entries).catch((error: unknown) => {
      archive.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    });
    writing.catch(() => {});
    await this.#container.putArchive(Readable.from(archive), { path: absolute, noOverwriteDirNonDir: "true" });
    await writing;
  }

  async #write(archive: Pack, entries: Iterable<ArchiveEntry>): Promise<void> {
    const { uid, gid } = this.#owner;
    for (const { name, content } of entries) {
      const entry = { name, uid, gid, mtime: new Date() };
      if (!content) {
        archive.entry({ ...entry, type: "directory", mode: 0o755 });
        continue;
      }
      const sink = archive.entry({ ...entry, type: "file", mode: 0o644, size: content.size });
      for await (const chunk of content.chunks) if (!sink.write(chunk)) await once(sink, "drain");
      sink.end(new Uint8Array());
    }
    archive.finalize();
  }
}

/** The error for a path that a link leads out of the workspace. */
function leadsOut(relative: string): WorkspacePathError {
  return new WorkspacePathError(`The path ${JSON.stringify(relative)} is not in the workspace`, {
    remedy: "Use a path relative to the workspace, without `..` and not through a symbolic link that leaves it.",
  });
}

/** The error for a path that is not there. */
export function notThere(relative: string): FileNotFoundError {
  return new FileNotFoundError(`There is no file ${JSON.stringify(relative)} in the workspace`, {
    remedy: "`files.list()` says which files there are.",
  });
}

/** The error for a path that is something else than a file. */
export function notAFile(relative: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(relative)} is not a regular file`, {
    remedy: "Name a file; `files.list()` says which there are.",
  });
}

function readInfo(answer: unknown): PathInfo {
  const headers: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, "headers") : undefined;
  const encoded: unknown =
    typeof headers === "object" && headers !== null ? Reflect.get(headers, "x-docker-container-path-stat") : undefined;
  const stat = statHeader.parse(JSON.parse(Buffer.from(String(encoded), "base64").toString()));
  return { kind: kindOf(stat.mode), size: stat.size, target: stat.linkTarget };
}

function kindOf(mode: number): PathInfo["kind"] {
  const has = (bits: number): boolean => (BigInt(mode) & BigInt(bits)) !== 0n;
  if (has(goDirectory)) return "directory";
  if (has(goLink)) return "link";
  return has(goIrregular) ? "other" : "file";
}

function isEntry(value: unknown): value is Readable & { readonly header: Header } {
  return value instanceof Object && "header" in value && "resume" in value;
}
