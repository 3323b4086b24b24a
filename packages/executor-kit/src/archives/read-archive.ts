import { ByteQueue, InvalidInputError } from "@fenced/core";
import { pathOfLatin1 } from "../workspace/path-bytes.ts";
import type { SpoolFile } from "../workspace/spool-file.ts";
import { outsideWorkspace } from "../workspace/workspace-path.ts";
import { decodePax, decodeTarHeader, type RawTarHeader, tarBlock, type TarEntry, textAt } from "./tar-header.ts";

/** Limits on the entries of an archive, which are kept in memory, and on the directories above them. */
export const mostEntries = 500_000;
const mostCharacters = 67_108_864;
/** The longest path that Linux takes, and how deep it may lead; longer ones would keep this process busy. */
const [longestPath, deepest] = [4096, 256];
/** Maximum size of what precedes an entry in headers of its own: long names, pax records. */
const longestExtra = 1_048_576;
/** How many such headers may precede one entry. */
const mostExtras = 16;

/** An entry whose content has been spooled. */
export interface SpooledEntry extends TarEntry {
  /** Where its content begins in the spool file. */
  readonly at: number;
}

/** What headers before an entry say of it. */
interface Extra {
  path?: string;
  target?: string;
  size?: number;
}

/** Reads a tar archive: spools the files' content, and yields the entries. */
export class ArchiveReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #spool: SpoolFile;
  readonly #maxBytes: number;
  readonly #queue = new ByteQueue();
  #ended = false;

  constructor(archive: AsyncIterable<Uint8Array>, spool: SpoolFile, maxBytes: number) {
    this.#source = archive[Symbol.asyncIterator]();
    this.#spool = spool;
    this.#maxBytes = maxBytes;
  }

  /** @throws InvalidInputError if the archive is not valid, or has too much of anything. */
  async read(): Promise<SpooledEntry[]> {
    const entries: SpooledEntry[] = [];
    let characters = 0;
    try {
      for (let next = await this.#entry(); next; next = await this.#entry()) {
        characters += next.path.length + next.target.length;
        if (entries.length >= mostEntries || characters > mostCharacters) throw tooMany();
        entries.push(next);
      }
    } finally {
      await this.#source.return?.();
    }
    return entries;
  }

  async #entry(): Promise<SpooledEntry | undefined> {
    const extra: Extra = {};
    for (let count = 0; count <= mostExtras; count += 1) {
      const block = await this.#take(tarBlock, count === 0);
      if (!block || block.every((byte) => byte === 0)) {
        if (count > 0) throw invalid("a header belongs to no entry");
        return undefined;
      }
      const header = decodeTarHeader(block);
      if (!header) throw invalid("something that is not a header is where one should be");
      if (!(await this.#takeExtra(header, extra))) return this.#spooled({ ...header, ...extra });
    }
    throw invalid("too many headers precede one entry");
  }

  /** Returns whether the header is one about the next entry. */
  async #takeExtra({ flag, size }: RawTarHeader, extra: Extra): Promise<boolean> {
    if (!["x", "g", "L", "K"].includes(flag)) return false;
    if (size > longestExtra) throw invalid("a name or a header is longer than 1 MiB");
    const content = (await this.#take(size)) ?? Buffer.alloc(0);
    await this.#skipPadding(size);
    const text = pathOfLatin1(textAt(content, 0, size));
    if (flag === "L") extra.path = text;
    if (flag === "K") extra.target = text;
    if (flag === "x" || flag === "g") readPax(content, flag === "g" ? {} : extra);
    return true;
  }

  async #spooled(header: RawTarHeader): Promise<SpooledEntry> {
    const type = typeOf(header);
    const { size: given, mode, modifiedAt, target } = header;
    const size = type === "file" ? given : 0;
    if (type !== "file" && given !== 0 && type !== "hard") throw invalid("something that is not a file has content");
    if (this.#spool.size + size > this.#maxBytes) throw tooLarge(this.#maxBytes);
    const at = this.#spool.size;
    await this.#spoolContent(size);
    const isLink = type === "link" || type === "hard";
    return { path: header.path, type, mode, modifiedAt, size, at, target: isLink ? target : "" };
  }

  async #spoolContent(size: number): Promise<void> {
    for (let left = size; left > 0;) {
      if (this.#queue.length === 0 && !(await this.#pull())) throw invalid("it ends in the middle of a file");
      const piece = this.#queue.take(Math.min(left, this.#queue.length));
      left -= piece.length;
      await this.#spool.write(piece);
    }
    await this.#skipPadding(size);
  }

  async #skipPadding(size: number): Promise<void> {
    await this.#take((tarBlock - (size % tarBlock)) % tarBlock);
  }

  /** @param mayEnd - return `undefined` if the archive ends here. Default: false. */
  async #take(length: number, mayEnd = false): Promise<Buffer | undefined> {
    while (this.#queue.length < length) {
      if (await this.#pull()) continue;
      if (mayEnd && this.#queue.length === 0) return undefined;
      throw invalid("it ends in the middle of an entry");
    }
    return Buffer.from(this.#queue.take(length));
  }

  async #pull(): Promise<boolean> {
    if (this.#ended) return false;
    const step = await this.#source.next();
    if (step.done === true) {
      this.#ended = true;
      return false;
    }
    const given: unknown = step.value;
    if (!(given instanceof Uint8Array)) {
      throw new InvalidInputError("files.extract: an archive must consist of Uint8Arrays", {
        remedy: "Pass a stream of bytes, such as the body of a request.",
      });
    }
    this.#queue.add(given);
    return true;
  }
}

function readPax(content: Buffer, extra: Extra): void {
  const records = decodePax(content);
  if (!records) throw invalid("a pax header is damaged");
  for (const [name, value] of records) {
    if (name.startsWith("GNU.sparse.")) throw unsupported("a sparse file");
    if (name === "path") extra.path = pathOfLatin1(value);
    if (name === "linkpath") extra.target = pathOfLatin1(value);
    if (name !== "size") continue;
    if (!/^\d{1,15}$/.test(value)) throw invalid("the size of a file is not a number");
    extra.size = Number(value);
  }
}

function typeOf({ flag, path }: RawTarHeader): TarEntry["type"] {
  if (flag === "5") return "directory";
  if (flag === "2") return "link";
  if (flag === "1") return "hard";
  // Old programs write directories as files whose names end with a slash.
  if (flag === "0" || flag === "\0" || flag === "7") return path.endsWith("/") ? "directory" : "file";
  const kinds: Readonly<Record<string, string>> = {
    "3": "a device",
    "4": "a device",
    "6": "a pipe",
    S: "a sparse file",
  };
  throw unsupported(kinds[flag] ?? "an entry of an unknown kind");
}

/**
 * A path in an archive, without `./` and a slash at its end; empty for the top.
 *
 * @throws WorkspacePathError if it leads out; InvalidInputError if it is too long.
 */
export function archivedPath(given: string): string {
  if (given.length > longestPath) throw tooDeep(given);
  const parts = given.split("/").filter((part) => part !== "" && part !== ".");
  if (given.startsWith("/") || given.includes("\0") || parts.includes("..")) {
    throw outsideWorkspace(given.slice(0, 200));
  }
  if (parts.length > deepest) throw tooDeep(given);
  return parts.join("/");
}

function tooDeep(path: string): InvalidInputError {
  const what = `A path in the archive has more than ${longestPath} characters or ${deepest} parts`;
  return new InvalidInputError(`${what}: ${JSON.stringify(`${path.slice(0, 200)}…`)}`, {
    remedy: "Shorten the names of its directories, or pack an inner one.",
  });
}

/** The error for an archive with too many entries or directories. */
export function tooMany(): InvalidInputError {
  return new InvalidInputError(`The archive has more than ${mostEntries} entries, or too long paths`, {
    remedy: "Split it.",
  });
}

function tooLarge(maxBytes: number): InvalidInputError {
  return new InvalidInputError(`The files of the archive are larger than \`maxBytes\`, ${maxBytes} bytes`, {
    remedy: "Split the archive, or raise `maxBytes`.",
  });
}

function unsupported(what: string): InvalidInputError {
  return new InvalidInputError(`The archive has ${what}, which is not unpacked`, {
    remedy: "Pack only files, directories and links.",
  });
}

/** The error for an archive that is not valid. */
export function invalid(problem: string): InvalidInputError {
  return new InvalidInputError(`This is not a complete tar archive: ${problem}`, {
    remedy: 'Pass an uncompressed tar archive; unpack gzip with `new DecompressionStream("gzip")` first.',
  });
}
