import { once } from "node:events";
import path from "node:path";
import { Readable } from "node:stream";
import { BackendUnavailableError, InvalidInputError, parseJson } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { answered, isNotFound, type Container } from "@fenced/docker-daemon";
import { asWorkspaceError, type FileContent, type FileOwner } from "@fenced/executor-kit";
import { extract, pack, type Header, type Pack } from "tar-stream";
import { z } from "zod";
import { workspacePath } from "../container/container-options.ts";

/** What a path in a container leads to. */
export interface PathInfo {
  readonly kind: "file" | "directory" | "link" | "other";
  readonly size: number;
  readonly modifiedAt: Date;
  /** The absolute path in the container that a link points to. */
  readonly target: string;
}

/** One file or directory to copy into a container. */
export interface ArchiveEntry {
  /** Relative to the directory into which the archive is unpacked. */
  readonly name: string;
  /** Absent for a directory. */
  readonly content?: FileContent;
}

/** A file or directory that the daemon sends. */
export interface ContainerEntry {
  readonly header: Header;
  readonly content: AsyncIterable<Uint8Array>;
}

const statHeader = z.object({ size: z.number(), mode: z.number(), mtime: z.coerce.date(), linkTarget: z.string() });
/** Mode bits as Go defines them. */
const [goDirectory, goLink, goIrregular] = [0x8000_0000, 0x0800_0000, 0x8f28_0000];
/** Maximum number of links to follow; more count as a loop. */
const mostLinks = 40;

/** Reads and writes files of a container's work directory through the daemon, as tar archives. */
export class ContainerArchive {
  readonly #container: Container;
  readonly #owner: FileOwner;

  /** @param owner - owner of what is written. */
  constructor(container: Container, owner: FileOwner) {
    this.#container = container;
    this.#owner = owner;
  }

  /**
   * Resolves the links in a workspace path to an absolute path. The last part need not exist.
   *
   * @param relative - normalized.
   * @param last - whether to follow the last part, too, if it is a link.
   * @throws WorkspacePathError if a link on the way leads out of the workspace.
   */
  async resolve(relative: string, last: "follow" | "keep", followed = 0): Promise<string> {
    const parts = relative === "." ? [] : relative.split("/");
    let place = workspacePath;
    for (const [index, part] of parts.entries()) {
      place = `${place}/${part}`;
      if (last === "keep" && index === parts.length - 1) break;
      const info = await this.info(place);
      // The daemon would only report a failure.
      const leaf = info?.kind === "file" || info?.kind === "other";
      if (leaf && index < parts.length - 1) throw fileError("ENOENT", relative);
      if (info?.kind !== "link") continue;
      const below = path.posix.relative(workspacePath, info.target);
      const outside = below.split("/")[0] === ".." || followed > mostLinks || !(await this.info(info.target));
      if (outside) throw fileError("ELOOP", relative);
      return this.resolve(path.posix.join(below || ".", ...parts.slice(index + 1)), last, followed + 1);
    }
    return place;
  }

  /** What an absolute path leads to, without following its last part; `undefined` if it does not exist. */
  async info(absolute: string): Promise<PathInfo | undefined> {
    try {
      const answer: unknown = await answered(this.#container.infoArchive({ path: absolute }), "archive info");
      return readInfo(answer);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /**
   * Yields the entries in the archive of an absolute path, one by one. Unread content of an entry is skipped.
   *
   * @param milliseconds - time limit for the whole archive, since the code decides how large it is. Default: no limit.
   * @throws BackendUnavailableError if it takes longer, or the daemon falls silent.
   */
  async *entries(absolute: string, milliseconds: number = Infinity): AsyncGenerator<ContainerEntry, void, void> {
    const stream = await answered(this.#container.getArchive({ path: absolute }), "archive get");
    const extraction = extract();
    // Pass an error of the stream on to the reader of the extraction.
    stream.on("error", (error: Error) => extraction.destroy(error));
    const progress: Progress = { moved: true, excused: () => stream.isPaused() };
    const watch = watchProgress(progress, milliseconds, (error) => extraction.destroy(error));
    stream.on("data", () => {
      progress.moved = true;
    });
    stream.pipe(extraction);
    try {
      for await (const entry of extraction) {
        if (!isEntry(entry)) continue;
        yield { header: entry.header, content: entry };
        entry.resume();
      }
    } finally {
      clearInterval(watch);
      if (stream instanceof Readable) stream.destroy();
    }
  }

  /**
   * Writes entries below an absolute path, which must exist.
   *
   * @throws BackendUnavailableError if the daemon falls silent.
   */
  async put(absolute: string, entries: Iterable<ArchiveEntry>): Promise<void> {
    const archive = pack();
    const giveUp = new AbortController();
    const writing = this.#write(archive, entries).catch((error: unknown) => {
      archive.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    });
    writing.catch(() => {});
    const progress: Progress = { moved: true, excused: () => false };
    const watch = watchProgress(progress, Infinity, (error) => giveUp.abort(error));
    const sent = Readable.from(counted(archive, progress));
    try {
      const query = { path: absolute, noOverwriteDirNonDir: "true", abortSignal: giveUp.signal };
      await untilAborted(this.#container.putArchive(sent, query), giveUp.signal);
      await writing;
    } finally {
      clearInterval(watch);
    }
  }

  async #write(archive: Pack, entries: Iterable<ArchiveEntry>): Promise<void> {
    const { uid, gid } = this.#owner;
    for (const { name, content } of entries) {
      const entry = { name, uid, gid, mtime: new Date() };
      if (!content) {
        archive.entry({ ...entry, type: "directory", mode: 0o755 });
        continue;
      }
      // A file may change while it is copied, so the header of a small file states the size that was actually read.
      const known = content.size <= smallBytes ? await gather(content) : content;
      const sink = archive.entry({ ...entry, type: "file", mode: 0o644, size: known.size });
      // Errors also reject `once`, or are thrown below.
      sink.on("error", () => {});
      let left = known.size;
      for await (const chunk of known) {
        left -= chunk.length;
        if (!sink.write(chunk)) await once(sink, "drain");
      }
      if (left !== 0) throw changedMeanwhile(name);
      sink.end(new Uint8Array());
    }
    archive.finalize();
  }
}

/** Up to this size in bytes, a file is read before its header is written. */
const smallBytes = 1_048_576;

/** Reads at most the size that the content declares. */
async function gather(content: FileContent): Promise<FileContent> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return contentOf(Buffer.concat(chunks).subarray(0, content.size));
}

/** The content of a file that is in memory. */
export function contentOf(bytes: Buffer): FileContent {
  return {
    size: bytes.length,
    async *[Symbol.asyncIterator]() {
      yield bytes;
    },
  };
}

function changedMeanwhile(name: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(name)} changed while it was copied into the container`, {
    remedy: "Copy it again when no program writes to it.",
  });
}

const lookMs = 1000;
/** Checks in a row at which a daemon may have transferred nothing. */
const mostIdle = 30;

/** The progress of a transfer. */
interface Progress {
  /** True if data has moved since this was last set to false. */
  moved: boolean;
  /** True if nothing can move because this program does not read. */
  readonly excused: () => boolean;
}

/** Ends a transfer that takes too long, or whose daemon falls silent. */
function watchProgress(progress: Progress, milliseconds: number, onEnd: (error: Error) => void): NodeJS.Timeout {
  const end = performance.now() + milliseconds;
  let idle = 0;
  return setInterval(() => {
    idle = progress.moved || progress.excused() ? 0 : idle + 1;
    progress.moved = false;
    if (performance.now() > end) {
      onEnd(
        new BackendUnavailableError(
          `Reading the workspace from the container took more than ${milliseconds / 1000} s`,
          {
            remedy: "Remove large files, or write files that you do not need to keep to /tmp, outside the workspace.",
          },
        ),
      );
    } else if (idle >= mostIdle) {
      onEnd(
        new BackendUnavailableError(`The Docker daemon has moved no data for ${mostIdle} s`, {
          remedy: "Check whether the daemon is overloaded or stopped, then try again.",
        }),
      );
    }
  }, lookMs).unref();
}

async function* counted(archive: Pack, progress: Progress): AsyncGenerator<unknown, void, void> {
  for await (const chunk of archive) {
    progress.moved = true;
    yield chunk;
  }
}

/** The error for a file with which the system's `code` would be reported. */
export function fileError(code: "EISDIR" | "ELOOP" | "ENAMETOOLONG" | "ENOENT", file: string): unknown {
  return asWorkspaceError(Object.assign(new Error(code), { code }), file);
}

function readInfo(answer: unknown): PathInfo {
  const headers: unknown = Reflect.get(Object(answer), "headers");
  const encoded: unknown = Reflect.get(Object(headers), "x-docker-container-path-stat");
  const stat = statHeader.parse(parseJson(Buffer.from(String(encoded), "base64")));
  return { kind: kindOf(stat.mode), size: stat.size, modifiedAt: stat.mtime, target: stat.linkTarget };
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
