import type { FileEvent } from "@fenced/core";
import { pathOfLatin1 } from "../../workspace/path-bytes.ts";
import { watchProgram } from "../python-programs.ts";
import { notAnAnswer, readRecords } from "./file-pieces.ts";
import { ask, type FilesPlace } from "./file-request.ts";

/** What to watch in a place. */
export interface WatchRequest {
  /** Relative to the workspace, normalized. */
  readonly path: string;
  readonly recursive: boolean;
  /** Ends it. */
  readonly signal: AbortSignal;
}

const kinds: ReadonlyMap<string, FileEvent["type"]> = new Map(
  (["create", "write", "chmod", "rename", "remove", "overflow"] as const).map((kind) => [kind, kind]),
);
/** Levels below the top, each with a name of at most 255 bytes. */
const longestPath = 257 * 256;

/**
 * Watches a directory by a program in the place, which waits while nobody reads, so that what happens meanwhile waits in the
 * kernel there, up to its limit. Yields `undefined` first of all, once the directory is watched.
 *
 * @throws FileNotFoundError, WorkspacePathError, InvalidInputError as `WorkspaceFiles.watch`.
 */
export async function* watchDirectory(
  place: FilesPlace,
  { path, recursive, signal }: WatchRequest,
): AsyncGenerator<FileEvent | undefined, void, void> {
  const answer = ask(place, { words: ["watch", path, recursive ? "all" : "top"], program: watchProgram, signal });
  let isWatched = false;
  for await (const record of readRecords(answer, path)) {
    // It still runs.
    if (record === ".") {
      if (!isWatched) yield undefined;
      isWatched = true;
    } else yield eventOf(record, path);
  }
}

/** Reads what the program says, as which code may write. @throws BackendUnavailableError if it makes no sense. */
function eventOf(record: string, directory: string): FileEvent {
  const space = record.indexOf(" ");
  const type = kinds.get(record.slice(0, Math.max(0, space)));
  const below = record.slice(space + 1);
  const isPath = !below.split("/").some((part) => part === ".." || part === ".") && !below.startsWith("/");
  if (type === undefined || below.length > longestPath || !isPath) throw notAnAnswer(directory);
  const name = pathOfLatin1(below);
  if (name === "") return { type, path: directory };
  return { type, path: directory === "." ? name : `${directory}/${name}` };
}
