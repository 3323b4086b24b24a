import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, FileNotFoundError, InvalidInputError, type FileInfo } from "@fenced/core";
import type { SessionApi } from "../api/session-api.ts";
import { localContent } from "../files/local-content.ts";
import { RemoteFiles } from "../files/remote-files.ts";
import { ServiceError } from "../http/service-error.ts";
import { isSessionGone } from "../http/session-gone.ts";
import { isLogName } from "./output-log.ts";

/** Files in a row that the service fails to give before the rest is not asked for: each may cost all its patience. */
const mostFailures = 3;
/** Answers to an upload that speak of the file: its name, its place, its size. */
const refusals: ReadonlySet<number> = new Set([400, 404, 409, 413, 415, 422]);

/** The files of a session that is given up, on this host, on their way into the next one. */
export class CarriedFiles {
  readonly #directory: string;
  readonly #paths: readonly string[];
  readonly #logName: string;

  private constructor(directory: string, paths: readonly string[], logName: string) {
    this.#directory = directory;
    this.#paths = paths;
    this.#logName = logName;
  }

  /** Fetches all files of the session, also while code runs in it. */
  static async fetch(api: SessionApi, scratch: string, logName: string): Promise<CarriedFiles> {
    const directory = path.join(scratch, randomUUID());
    const files = new RemoteFiles(
      async () => api,
      () => false,
    );
    const fetched: string[] = [];
    let failures = 0;
    for (const { path: file } of await files.list()) {
      const outcome = await fetchFile(files, file, directory);
      if (outcome === "fetched") fetched.push(file);
      failures = outcome === "failed" ? failures + 1 : 0;
      if (outcome !== "gone" && failures < mostFailures) continue;
      warn("The other files of the session were not fetched: it does not give them any more");
      break;
    }
    return new CarriedFiles(directory, fetched, logName);
  }

  /** Where the log of the last block is; `undefined` if there was none. */
  get log(): string | undefined {
    return this.#paths.includes(this.#logName) ? path.join(this.#directory, this.#logName) : undefined;
  }

  /** Uploads them; those that the service does not take stay behind, with a warning. */
  async store(api: SessionApi): Promise<void> {
    for (const file of this.#paths) {
      if (isLogName(file)) continue;
      try {
        await api.writeFile(file, await localContent(path.join(this.#directory, file)));
      } catch (error) {
        if (!isAboutFile(error)) throw error;
        warn(`The file ${file} could not be taken into the new session: ${error.message}`);
      }
    }
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Whether a file came along: `left`, it cannot; `failed`, the service did not give it; `gone`, the whole session is not there any more. */
async function fetchFile(
  files: RemoteFiles,
  file: FileInfo["path"],
  directory: string,
): Promise<"fetched" | "left" | "failed" | "gone"> {
  try {
    await files.download([file], directory);
    return "fetched";
  } catch (error) {
    // What the running code removes meanwhile is not there to be carried.
    if (FileNotFoundError.isInstance(error)) return "left";
    if (isSessionGone(error)) return "gone";
    warn(`The file ${file} could not be fetched: ${error instanceof Error ? error.message : String(error)}`);
    return BackendUnavailableError.isInstance(error) ? "failed" : "left";
  }
}

/** Whether an upload failed because of the file itself: it would fail in all sessions, and the others would not. */
function isAboutFile(error: unknown): error is Error {
  if (InvalidInputError.isInstance(error) || FileNotFoundError.isInstance(error)) return true;
  return error instanceof ServiceError && refusals.has(error.status) && !error.isCapacity && !error.isSessionGone;
}

function warn(message: string): void {
  process.emitWarning(message, { code: "FENCED_ACA" });
}
