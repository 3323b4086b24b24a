import { ByteQueue, checkpointPartBytes, FileNotFoundError } from "@fenced/core";
import { wholeFile, type BackendFiles } from "../workspace/backend-files.ts";
import { inTheWay } from "./in-the-way.ts";
import type {
  FileParts,
  FileVisit,
  PlannedEntry,
  TreeEntry,
  TreeLoss,
  TreePlan,
  WantedFile,
  WorkspaceTree,
} from "./workspace-tree.ts";

const fileMode = 0o644;
const notKept = "This executor has no way to create it";

/**
 * The tree of a place that only lists, reads and writes files. It has no permissions, times, links and empty
 * directories; but programs stay executable if files can be written so.
 */
export class ListedTree implements WorkspaceTree {
  readonly #files: BackendFiles;

  constructor(files: BackendFiles) {
    this.#files = files;
  }

  async list(add: (entry: TreeEntry) => void): Promise<void> {
    const modifiedAt = Date.now();
    for (const { path, size } of await this.#files.list()) {
      add({ path, type: "file", mode: fileMode, modifiedAt, size });
    }
  }

  async read<File extends WantedFile>(files: readonly File[], visit: FileVisit<File>): Promise<void> {
    for (const file of files) {
      const content = this.#partsOf(file);
      try {
        await visit(file, content);
      } catch (error) {
        if (!FileNotFoundError.isInstance(error)) throw error;
        await visit(file, "gone");
      }
    }
  }

  async create(plan: TreePlan, lose: TreeLoss): Promise<void> {
    // Nothing can be written beside what is there and moved, so read everything once before anything is written.
    const before = new Set((await this.#files.list()).map(({ path }) => path));
    const directories = new Set([...before].flatMap(directoriesAbove));
    for await (const { path, type, content } of plan.entries()) {
      if (type === "file" && directories.has(path)) throw inTheWay(path, "directory");
      const places = type === "directory" ? [path, ...directoriesAbove(path)] : directoriesAbove(path);
      const file = places.find((place) => before.has(place));
      if (file !== undefined) throw inTheWay(file, "file");
      await readAll(content());
    }
    const written: string[] = [];
    const full = new Set<string>();
    try {
      for await (const entry of plan.entries()) {
        full.add(entry.path.slice(0, Math.max(0, entry.path.lastIndexOf("/"))));
        if (entry.type === "link") lose(entry.path, `${notKept}: it is a link`);
        if (entry.type !== "file") continue;
        await this.#write(entry, lose);
        written.push(entry.path);
      }
    } catch (error) {
      // What was there before is the user's, even if it has been replaced.
      for (const path of written) if (!before.has(path)) await this.#files.remove(path).catch(() => {});
      throw error;
    }
    for await (const { path, type } of plan.entries()) {
      if (type === "directory" && !full.has(path)) lose(path, `${notKept}: it is an empty directory`);
    }
  }

  async *#partsOf({ path, size: atMost }: WantedFile): FileParts {
    const queue = new ByteQueue();
    let [size, isLonger] = [0, false];
    for await (const chunk of this.#files.content(path, wholeFile)) {
      const wanted = chunk.subarray(0, atMost - size);
      queue.add(wanted);
      size += wanted.length;
      while (queue.length >= checkpointPartBytes) yield queue.take(checkpointPartBytes);
      isLonger = wanted.length < chunk.length;
      if (isLonger) break;
    }
    if (queue.length > 0) yield queue.take();
    if (isLonger) return { state: undefined, isChanged: true, size: (await this.#files.stat(path)).size };
    return { state: undefined, isChanged: size !== atMost, size };
  }

  async #write(entry: PlannedEntry, lose: TreeLoss): Promise<void> {
    const { path, mode } = entry;
    const isProgram = (mode & 0o111) !== 0;
    const keepsIt = this.#files.features.includes("modes");
    if (isProgram && !keepsIt) lose(path, "This executor has no way to make it executable");
    const writer = await this.#files.writer(path, isProgram && keepsIt ? { mode } : {});
    try {
      let at = 0;
      for await (const piece of entry.content()) {
        const bytes = piece === "hole" ? Buffer.alloc(Math.min(checkpointPartBytes, entry.size - at)) : piece;
        await writer.write(bytes);
        at += bytes.length;
      }
      await writer.close();
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }
}

function directoriesAbove(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join("/"));
}

async function readAll(content: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of content);
}
