import path from "node:path";
import { BackendUnavailableError, InvalidInputError, type FileInfo, type FileStat } from "@fenced/core";
import type { FileContent, RemoteFileAccess } from "@fenced/executor-kit";
import { workspacePath } from "../container/container-options.ts";
import type { RunningContainer } from "../container/running-container.ts";
import { fileError, type ArchiveEntry, type ContainerArchive } from "./container-archive.ts";

/** Time limit for listing the workspace in milliseconds; the daemon sends all of its content for that. */
const listMs = 60_000;
/** Time limit for removing files in milliseconds; the code can stop the program that does it. */
const removeMs = 20_000;
/** Maximum length of a file name on Linux, in bytes. */
const longestName = 255;

/** The files of a work directory that exists only in the container. */
export class ArchiveAccess implements RemoteFileAccess {
  readonly #archive: ContainerArchive;
  readonly #container: RunningContainer;

  constructor(archive: ContainerArchive, container: RunningContainer) {
    this.#archive = archive;
    this.#container = container;
  }

  async *list(directory: string): AsyncGenerator<FileInfo, void, void> {
    const place = await this.#archive.resolve(usable(directory), "follow");
    if ((await this.#archive.info(place))?.kind !== "directory") throw fileError("ENOENT", directory);
    const top = path.posix.relative(workspacePath, path.posix.dirname(place));
    for await (const { header } of this.#archive.entries(place, listMs)) {
      const file = place === workspacePath ? belowTop(header.name) : path.posix.join(top, header.name);
      if (header.type === "file" && hasOwnName(file)) yield { path: file, size: header.size };
    }
  }

  async stat(file: string): Promise<FileStat> {
    const info = await this.#archive.info(await this.#archive.resolve(usable(file), "follow"));
    if (!info) throw fileError("ENOENT", file);
    const { kind, size, modifiedAt } = info;
    if (kind !== "file" && kind !== "directory") throw fileError("EISDIR", file);
    return { path: file, type: kind, size: kind === "file" ? size : 0, modifiedAt };
  }

  async *content(file: string): AsyncGenerator<Uint8Array, void, void> {
    const place = await this.#archive.resolve(usable(file), "follow");
    const info = await this.#archive.info(place);
    if (!info) throw fileError("ENOENT", file);
    if (info.kind !== "file") throw fileError("EISDIR", file);
    for await (const { content } of this.#archive.entries(place)) yield* content;
  }

  async put(file: string, content: FileContent): Promise<void> {
    const place = await this.#archive.resolve(usable(file), "follow");
    const parts = path.posix.relative(workspacePath, place).split("/");
    const entries: ArchiveEntry[] = [];
    for (let depth = 1; depth < parts.length; depth += 1) {
      const directory = parts.slice(0, depth).join("/");
      const info = await this.#archive.info(`${workspacePath}/${directory}`);
      if (!info) entries.push({ name: directory });
      else if (info.kind !== "directory") throw fileError("ENOENT", file);
    }
    const info = await this.#archive.info(place);
    if (place === workspacePath || (info && info.kind !== "file")) throw fileError("EISDIR", file);
    try {
      await this.#archive.put(workspacePath, [...entries, { name: parts.join("/"), content }]);
    } catch (error) {
      // A partial file must not be mistaken for a complete one.
      await removeInContainer(this.#container, place).catch(() => {});
      throw error;
    }
  }

  async remove(file: string): Promise<void> {
    const place = await this.#archive.resolve(usable(file), "keep");
    if (!(await this.#archive.info(place))) throw fileError("ENOENT", file);
    await removeInContainer(this.#container, place);
  }
}

/**
 * Removes a file or directory with a program in the container, since the daemon's API cannot do that.
 *
 * @throws InvalidInputError if the program fails, BackendUnavailableError if it does not end, because code may have
 * stopped it.
 */
export async function removeInContainer({ inventory, runner }: RunningContainer, place: string): Promise<void> {
  const { programs } = inventory;
  const remove = programs.get("rm");
  const python = programs.get("python3") ?? programs.get("python") ?? "python3";
  const code =
    "import os, shutil, sys\np = sys.argv[1]\nshutil.rmtree(p) if os.path.isdir(p) and not os.path.islink(p) else os.remove(p)";
  const argv = remove === undefined ? [python, "-c", code, place] : [remove, "-rf", "--", place];
  const signal = AbortSignal.timeout(removeMs);
  let said = "";
  for (const events = runner.run({ argv, env: {}, signal }); ;) {
    const { value, done } = await events.next();
    if (done === true && value.exitCode === 0) return;
    if (done === true) throw notRemoved(place, signal.aborted, said.trim());
    if ("data" in value && said.length < mostSaid) said += String(value.data);
  }
}

const mostSaid = 2000;

function notRemoved(place: string, late: boolean, said: string): Error {
  if (late) {
    return new BackendUnavailableError(`Removing ${place} took more than ${removeMs / 1000} s`, {
      remedy: "Call restart(), which ends all processes in the container, and try again.",
    });
  }
  return new InvalidInputError(`${place} could not be removed: ${said}`, {
    remedy: "Check that the user that the code runs as has permission to remove it.",
  });
}

/**
 * @throws InvalidInputError for a name that no file system accepts, for which the daemon would only report a failure.
 */
function usable(relative: string): string {
  if (relative.split("/").every((part) => Buffer.byteLength(part) <= longestName)) return relative;
  throw fileError("ENAMETOOLONG", relative);
}

/**
 * False for a name that is not UTF-8: the daemon's archives keep its bytes, of which only U+FFFD arrives here, so that
 * several such files would become one. The daemon's API cannot name them either.
 */
export function hasOwnName(file: string): boolean {
  return !/[\uFFFD\p{Surrogate}]/u.test(file);
}

/** An entry's name without the directory that starts every name in the archive. */
export function belowTop(name: string): string {
  return name.replace(/^[^/]*\/?/, "");
}
