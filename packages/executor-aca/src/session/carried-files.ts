import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import { FileNotFoundError, InvalidInputError, type FileInfo } from "@fenced/core";
import type { SessionApi } from "../api/session-api.ts";
import { localContent } from "../files/local-content.ts";
import { RemoteFiles } from "../files/remote-files.ts";

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
    for (const { path: file } of await files.list()) {
      // What the running code removes meanwhile is not there to be carried.
      if (await isFetched(files, file, directory)) fetched.push(file);
    }
    return new CarriedFiles(directory, fetched, logName);
  }

  /** Where the log of the last block is; `undefined` if there was none. */
  get log(): string | undefined {
    return this.#paths.includes(this.#logName) ? path.join(this.#directory, this.#logName) : undefined;
  }

  /** Uploads them; those that are too large for it stay behind, with a warning. */
  async store(api: SessionApi): Promise<void> {
    for (const file of this.#paths) {
      if (file === this.#logName) continue;
      try {
        await api.writeFile(file, await localContent(path.join(this.#directory, file)));
      } catch (error) {
        if (!InvalidInputError.isInstance(error)) throw error;
        process.emitWarning(`The file ${file} could not be taken into the new session: ${error.message}`, {
          code: "FENCED_ACA",
        });
      }
    }
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }
}

async function isFetched(files: RemoteFiles, file: FileInfo["path"], directory: string): Promise<boolean> {
  try {
    await files.download([file], directory);
    return true;
  } catch (error) {
    if (FileNotFoundError.isInstance(error) || InvalidInputError.isInstance(error)) return false;
    throw error;
  }
}
