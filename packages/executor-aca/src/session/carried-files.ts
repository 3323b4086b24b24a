import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import path from "node:path";
import {
  BackendUnavailableError,
  FileNotFoundError,
  InvalidInputError,
  sanitizeTerminalText,
  type FileInfo,
} from "@fenced/core";
import { RemoteFiles, type FileContent } from "@fenced/executor-kit";
import type { SessionApi } from "../api/session-api.ts";
import { uploadLimit } from "../api/wire-types.ts";
import { AcaFileAccess } from "../files/aca-file-access.ts";
import { isSessionGone, ServiceError } from "../http/service-error.ts";
import { isLogName } from "./output-log.ts";

/** Limits on what is carried: code decides how much there is, and it is stored on this host's disk. */
const [mostBytes, mostFiles] = [2 * 1024 * 1024 * 1024, 10_000];
/** Milliseconds for fetching all files. */
const patienceMs = 600_000;
/** Consecutive failed downloads after which the rest is skipped: each may use up its time limit. */
const mostFailures = 3;
/** Answers to an upload that are about the file: its name, its location, its size. */
const refusals: ReadonlySet<number> = new Set([400, 404, 409, 413, 415, 422]);

/** Files of an abandoned session, kept on this host on their way into the next one. */
export class CarriedFiles {
  readonly #directory: string;
  readonly #paths: readonly string[];
  readonly #logName: string;

  private constructor(directory: string, paths: readonly string[], logName: string) {
    this.#directory = directory;
    this.#paths = paths;
    this.#logName = logName;
  }

  /** Fetches all files of the session, even while code runs in it. */
  static async fetch(api: SessionApi, scratch: string, logName: string): Promise<CarriedFiles> {
    const directory = path.join(scratch, randomUUID());
    const access = new BoundedAccess(async (call) => call(api), AbortSignal.timeout(patienceMs));
    const files = new RemoteFiles(access);
    const fetched: string[] = [];
    let failures = 0;
    for (const { path: file, size } of await files.list()) {
      if (size > uploadLimit && file !== logName) {
        warn(`The file ${file} was not carried over: it is larger than 128 MB`);
        continue;
      }
      if (fetched.length >= mostFiles || access.bytes >= mostBytes) {
        warn("The session's other files were not carried over: there are too many");
        break;
      }
      const outcome = await fetchFile(files, file, directory);
      if (outcome === "fetched") fetched.push(file);
      failures = outcome === "failed" ? failures + 1 : 0;
      if (outcome !== "gone" && failures < mostFailures) continue;
      warn("The session's other files were not carried over: they can no longer be downloaded");
      break;
    }
    return new CarriedFiles(directory, fetched, logName);
  }

  /** The path of the last block's log; `undefined` if there was none. */
  get log(): string | undefined {
    return this.#paths.includes(this.#logName) ? path.join(this.#directory, this.#logName) : undefined;
  }

  /** Uploads the files. Those that the service refuses stay behind, with a warning. */
  async store(api: SessionApi): Promise<void> {
    for (const file of this.#paths) {
      if (isLogName(file)) continue;
      try {
        await api.writeFile(file, await carriedContent(path.join(this.#directory, file)));
      } catch (error) {
        if (!isAboutFile(error)) throw error;
        warn(`The file ${file} could not be carried over into the new session: ${error.message}`);
      }
    }
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Counts downloaded bytes, and ends a download that is too long to carry, whatever the list said. */
class BoundedAccess extends AcaFileAccess {
  bytes = 0;

  override async *content(file: string): AsyncGenerator<Uint8Array, void, void> {
    let left = isLogName(file) ? 2 * uploadLimit : uploadLimit;
    for await (const piece of super.content(file)) {
      this.bytes += piece.length;
      left -= piece.length;
      if (left < 0) throw new InvalidInputError("It is larger than 128 MB", { remedy: "It stays behind." });
      yield piece;
    }
  }
}

/** A file that was fetched into a directory that only this process writes to. */
async function carriedContent(local: string): Promise<FileContent> {
  const { size } = await stat(local);
  return {
    size,
    async *[Symbol.asyncIterator]() {
      if (size > 0) yield* createReadStream(local, { end: size - 1 });
    },
  };
}

/**
 * Fetches a file. `left`: it cannot be carried; `failed`: the service did not deliver it; `gone`: the whole session no
 * longer exists.
 */
async function fetchFile(
  files: RemoteFiles,
  file: FileInfo["path"],
  directory: string,
): Promise<"fetched" | "left" | "failed" | "gone"> {
  try {
    await files.download([file], directory);
    return "fetched";
  } catch (error) {
    // The running code may have removed it in the meantime.
    if (FileNotFoundError.isInstance(error)) return "left";
    if (isSessionGone(error)) return "gone";
    warn(`The file ${file} could not be fetched: ${error instanceof Error ? error.message : String(error)}`);
    return BackendUnavailableError.isInstance(error) ? "failed" : "left";
  }
}

/** Whether an upload failed because of the file itself: it would fail in any session, but other files would not. */
function isAboutFile(error: unknown): error is Error {
  if (InvalidInputError.isInstance(error) || FileNotFoundError.isInstance(error)) return true;
  return error instanceof ServiceError && refusals.has(error.status) && !error.isCapacity && !error.isSessionGone;
}

function warn(message: string): void {
  process.emitWarning(sanitizeTerminalText(message), { code: "FENCED_ACA" });
}
