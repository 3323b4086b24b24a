import path from "node:path";
import { type CheckpointStore, InvalidInputError } from "@fenced/core";
import { ObjectStore } from "../store/object-store.ts";
import { DirectoryStorage } from "./directory-storage.ts";

/**
 * Keeps checkpoints in a directory of this host, which is created if it is missing, for this program's user only.
 * Several programs may use it at the same time, also over a network file system.
 *
 * @param directory - relative to the current directory.
 * @throws InvalidInputError if it is empty, or starts with `~`, which only a shell expands.
 *
 * @example
 * const store = directoryStore("checkpoints");
 * const { id } = await executor.checkpoint({ store });
 * await using later = new LocalCommandLineCodeExecutor({ restore: { store, id } });
 */
export function directoryStore(directory: string): CheckpointStore {
  if (typeof directory !== "string" || directory === "" || /^~([/\\]|$)/.test(directory)) {
    throw new InvalidInputError(`directoryStore needs the path of a directory, not ${JSON.stringify(directory)}`, {
      remedy: "Pass a relative or an absolute path; `~` is not expanded, os.homedir() returns your home directory.",
    });
  }
  return new ObjectStore(new DirectoryStorage(path.resolve(directory)));
}
