import { createHash } from "node:crypto";
import path from "node:path";
import {
  BackendUnavailableError,
  FileNotFoundError,
  InvalidInputError,
  type FileEntry,
  type FileStat,
  type ListOptions,
} from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import type { FileContent, RemoteFileAccess } from "@fenced/executor-kit";
import type { RemoteEntry, SessionApi } from "../api/session-api.ts";
import { uploadLimit } from "../api/wire-types.ts";
import { fileError } from "../http/explain-error.ts";

/** Attempts to download a file if the connection breaks in the middle. */
const downloadAttempts = 4;
/** Maximum milliseconds for a listing and for a transfer: code decides how long both are. */
const [longestListMs, longestTransferMs] = [600_000, 3_600_000];
/** Pages that one directory listing may have. */
const mostPages = 10_000;

/** Makes a call in whichever session is current. */
export type CallSession = <T>(call: (api: SessionApi) => Promise<T>) => Promise<T>;

/** The files of a session, below its `/mnt/data`. */
export class AcaFileAccess implements RemoteFileAccess {
  readonly maxFileBytes: number = uploadLimit;
  readonly #call: CallSession;
  readonly #signal: AbortSignal | undefined;

  /** @param signal - ends all calls. */
  constructor(call: CallSession, signal?: AbortSignal) {
    this.#call = call;
    this.#signal = signal;
  }

  async *list(directory: string, { recursive = true }: ListOptions = {}): AsyncGenerator<FileEntry, void, void> {
    const signal = this.#within(longestListMs);
    const left = [directory];
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      try {
        for await (const { name, isDirectory, size } of this.#entries(next, signal)) {
          const file = path.posix.join(next, name);
          if (isDirectory && recursive) left.push(file);
          yield isDirectory ? { path: file, type: "directory", size: 0 } : { path: file, type: "file", size };
        }
      } catch (error) {
        // A directory that has been deleted in the meantime has nothing to list.
        if (next === directory || !FileNotFoundError.isInstance(error)) throw error;
      }
    }
  }

  async stat(file: string): Promise<FileStat> {
    const signal = this.#within(longestListMs);
    if (file === ".") return { path: file, type: "directory", size: 0 };
    const name = path.posix.basename(file);
    try {
      for await (const entry of this.#entries(path.posix.dirname(file), signal, file)) {
        if (entry.name !== name) continue;
        const { isDirectory, size } = entry;
        return { path: file, type: isDirectory ? "directory" : "file", size: isDirectory ? 0 : size };
      }
    } catch (error) {
      // A part of its path is a file.
      if (!InvalidInputError.isInstance(error)) throw error;
    }
    throw notThere(file);
  }

  async *content(file: string): AsyncGenerator<Uint8Array, void, void> {
    const signal = this.#within(longestTransferMs);
    const seen = createHash("sha256");
    let length = 0;
    for (let attempt = 1; ; attempt += 1) {
      const bytes = await this.#ask(file, async (api) => {
        if (file.includes("/") && !api.hasDirectories) throw notThere(file);
        return api.readFile(file, signal);
      });
      try {
        for await (const piece of length === 0
          ? bytes
          : after({ bytes, length, seen: seen.copy().digest("hex"), file })) {
          seen.update(piece);
          length += piece.length;
          yield piece;
        }
        return;
      } catch (error) {
        if (attempt === downloadAttempts || !isLostConnection(error)) throw error;
      }
    }
  }

  async put(file: string, content: FileContent): Promise<void> {
    const signal = this.#within(longestTransferMs);
    await this.#ask(file, async (api) => {
      if (file.includes("/") && !api.hasDirectories) throw withoutDirectories(file);
      const stored = await api.writeFile(file, content, signal);
      if (stored !== undefined && stored !== content.size) throw stoppedShort(file, stored, content.size);
    });
  }

  async remove(file: string): Promise<void> {
    const signal = this.#within(longestListMs);
    const name = path.posix.basename(file);
    for await (const entry of this.#entries(path.posix.dirname(file), signal, file)) {
      if (entry.name !== name || !entry.isDirectory) continue;
      await this.#empty(file, signal);
      break;
    }
    // Listings omit symbolic links; if nothing exists, the service reports it.
    await this.#ask(file, (api) => api.removeFile(file, signal));
  }

  async #empty(directory: string, signal: AbortSignal): Promise<void> {
    const entries: RemoteEntry[] = [];
    for await (const entry of this.#entries(directory, signal)) entries.push(entry);
    for (const { name, isDirectory } of entries) {
      const file = path.posix.join(directory, name);
      if (isDirectory) await this.#empty(file, signal);
      await this.#ask(file, (api) => api.removeFile(file, signal));
    }
  }

  /** @param given - the path that errors name. */
  async *#entries(directory: string, signal: AbortSignal, given = directory): AsyncGenerator<RemoteEntry, void, void> {
    let cursor: Readonly<Record<string, string>> | undefined;
    for (let page = 0; page < mostPages; page += 1) {
      const { entries, next } = await this.#ask(given, async (api) => {
        if (directory !== "." && !api.hasDirectories) throw notThere(given);
        return api.listDirectory(directory, cursor, signal);
      });
      // Downloads turn names into paths on this host.
      for (const entry of entries) if (isName(entry.name)) yield entry;
      if (next === undefined) return;
      cursor = next;
    }
    throw new BackendUnavailableError(`The session pool's list of ${JSON.stringify(given)} never ends`, {
      remedy: "Remove files there with a block, or list a smaller directory.",
    });
  }

  async #ask<T>(file: string, call: (api: SessionApi) => Promise<T>): Promise<T> {
    return this.#call(call).catch((error: unknown) => {
      throw fileError(error, file);
    });
  }

  #within(milliseconds: number): AbortSignal {
    const limit = AbortSignal.timeout(milliseconds);
    return this.#signal ? joinSignals(this.#signal, limit) : limit;
  }
}

/** The content after the part that arrived before the connection broke. */
async function* after(part: {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly length: number;
  readonly seen: string;
  readonly file: string;
}): AsyncGenerator<Uint8Array, void, void> {
  const again = createHash("sha256");
  let left = part.length;
  for await (const piece of part.bytes) {
    const known = piece.subarray(0, left);
    if (known.length > 0) {
      again.update(known);
      left -= known.length;
      if (left === 0 && again.digest("hex") !== part.seen) throw changed(part.file);
    }
    if (known.length < piece.length) yield piece.subarray(known.length);
  }
  if (left > 0) throw changed(part.file);
}

function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
}

function isLostConnection(error: unknown): boolean {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  // A client that was closed in the meantime reports that on the next call.
  if (code === "UND_ERR_DESTROYED") return true;
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "UND_ERR_BODY_TIMEOUT";
}

function notThere(file: string): FileNotFoundError {
  return new FileNotFoundError(`There is no file ${JSON.stringify(file)} in the session`, {
    remedy: "`files.list()` shows which files there are.",
  });
}

function withoutDirectories(file: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(file)} is in a directory, which the older API does not support`, {
    remedy: "Use a name without `/`, or a newer `apiVersion`.",
  });
}

function stoppedShort(file: string, stored: number, size: number): BackendUnavailableError {
  return new BackendUnavailableError(`The session stored ${stored} of the ${size} bytes of ${JSON.stringify(file)}`, {
    remedy: "Upload it again; the file there is incomplete.",
  });
}

function changed(file: string): BackendUnavailableError {
  return new BackendUnavailableError(`${JSON.stringify(file)} changed while it was downloaded`, {
    remedy: "Download it again once nothing writes to it.",
  });
}
