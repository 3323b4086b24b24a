import { createHash } from "node:crypto";
import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { showHidden, wellFormed } from "@fenced/core";
import { errorCode, openRegularFile, type PinnedDirectory } from "@fenced/executor-kit";
import { refused } from "./refused.ts";
import type { SkillFile } from "./skill.ts";

/** What every host of skills accepts, by the specification of skills over MCP. */
const mostFiles = 512;
const mostBytes = 16 * 1024 * 1024;
const mostEntries = 2048;
const deepest = 16;
/** Left out: what version control and interpreters leave behind is no part of a skill. */
const ignored = new Set([".git", "__pycache__", ".DS_Store"]);
/** Bytes to read at once. */
const pieceBytes = 65_536;

/** What to do with a skill's files while they are read. */
export interface SkillTreeVisit {
  /** Called before what is in a directory. `path` is empty for the skill's own. */
  readonly enter?: (path: string) => Promise<void>;
  /** Called with each piece of a file; the last call for a file has none. */
  readonly file?: (path: string, pieces: AsyncIterable<Uint8Array>, executable: boolean) => Promise<void>;
  /** Called after what is in a directory. */
  readonly leave?: (path: string) => Promise<void>;
  /** Read what version control and interpreters leave behind, too. Default: false. */
  readonly all?: boolean;
}

/**
 * Lists all files of a skill with their digests, and hands their content to `visit`. The directory may change meanwhile;
 * nothing outside of it is read.
 *
 * @throws InvalidInputError if it contains a link, a special file, a misleading name, or too much.
 */
export async function readSkillTree(top: PinnedDirectory, visit: SkillTreeVisit = {}): Promise<SkillFile[]> {
  const reading = new Reading(visit);
  await reading.directory(top, "");
  return reading.files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

/** The digest of a list of files. */
export function digestOf(files: readonly SkillFile[]): string {
  const hash = createHash("sha256");
  for (const { path, size, digest } of files) hash.update(`${JSON.stringify([path, size, digest])}\n`);
  return `sha256:${hash.digest("hex")}`;
}

class Reading {
  readonly files: SkillFile[] = [];
  readonly #visit: SkillTreeVisit;
  #bytes = 0;
  #entries = 0;

  constructor(visit: SkillTreeVisit) {
    this.#visit = visit;
  }

  async directory(directory: PinnedDirectory, below: string): Promise<void> {
    if (below.split("/").length > deepest) throw refused("Its directories are nested too deeply", simplify);
    await this.#visit.enter?.(below.slice(0, -1));
    for (const { name, isDirectory } of await this.#entriesOf(directory)) {
      const path = `${below}${name}`;
      try {
        if (isDirectory) {
          await using child = await directory.child(name);
          await this.directory(child, `${path}/`);
        } else {
          await using handle = await openRegularFile(directory.entry(name), constants.O_RDONLY, path);
          await this.#file(handle, path);
        }
      } catch (error) {
        throw explained(error, path);
      }
    }
    await this.#visit.leave?.(below.slice(0, -1));
  }

  async #entriesOf(directory: PinnedDirectory) {
    const entries: { readonly name: string; readonly isDirectory: boolean }[] = [];
    for await (const entry of directory.entries()) {
      this.#entries += 1;
      if (this.#entries > mostEntries) throw refused(`It has more than ${mostEntries} entries`, simplify);
      if (this.#visit.all !== true && ignored.has(entry.name)) continue;
      entries.push(entry);
    }
    return entries.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async #file(handle: FileHandle, path: string): Promise<void> {
    if (isMisleading(path)) {
      throw refused(`The name ${showHidden(JSON.stringify(path))} has characters that mislead`, "Rename the file.");
    }
    if (this.files.length >= mostFiles) throw refused(`It has more than ${mostFiles} files`, simplify);
    const hash = createHash("sha256");
    let size = 0;
    const pieces = this.#pieces(handle, (piece) => {
      hash.update(piece);
      size += piece.length;
    });
    const { file } = this.#visit;
    if (file) await file(path, pieces, ((await handle.stat()).mode & 0o100) !== 0);
    // What was not consumed belongs to the digest, too.
    for await (const _ of pieces);
    this.files.push({ path, size, digest: `sha256:${hash.digest("hex")}` });
  }

  /** Counts what was really read: a file may grow meanwhile. */
  async *#pieces(handle: FileHandle, see: (piece: Uint8Array) => void): AsyncGenerator<Uint8Array, void, void> {
    for (;;) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(pieceBytes), 0, pieceBytes, null);
      if (bytesRead === 0) return;
      this.#bytes += bytesRead;
      if (this.#bytes > mostBytes) throw refused(`It has more than ${mostBytes} bytes`, simplify);
      const piece = buffer.subarray(0, bytesRead);
      see(piece);
      yield piece;
    }
  }
}

const simplify = "Keep a skill to at most 512 files and 16 MiB, 16 directories deep.";

/** True for a name that is not text, or that a terminal, a model or another system would take for something else. */
function isMisleading(path: string): boolean {
  return showHidden(path) !== path || wellFormed(path) !== path || /[\t\n\\\u{fffd}]/u.test(path);
}

/** Says what a link or an unreadable file means for a skill. */
function explained(error: unknown, path: string): unknown {
  const code = errorCode(error) ?? "";
  const shown = showHidden(path);
  if (["ELOOP", "EMLINK", "ENOTDIR"].includes(code)) {
    return refused(`${shown} is a link`, "Replace it with a copy.", error);
  }
  if (["EACCES", "EPERM", "ENOENT", "ENXIO"].includes(code)) {
    return refused(`${shown} cannot be read (${code})`, "Check its permissions, or remove it.", error);
  }
  return error;
}
