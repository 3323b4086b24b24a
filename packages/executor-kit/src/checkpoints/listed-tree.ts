import { ByteQueue, checkpointPartBytes, FileNotFoundError } from "@fenced/core";
import { wholeFile, type BackendFiles } from "../workspace/backend-files.ts";
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
 * directories.
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
      const content = partsOf(this.#files.content(file.path, wholeFile), file.size);
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
    for await (const { content } of plan.entries()) await readAll(content());
    const written: string[] = [];
    const full = new Set<string>();
    try {
      for await (const entry of plan.entries()) {
        full.add(entry.path.slice(0, Math.max(0, entry.path.lastIndexOf("/"))));
        if (entry.type === "link") lose(entry.path, `${notKept}: it is a link`);
        if (entry.type !== "file") continue;
        written.push(entry.path);
        await this.#write(entry);
      }
    } catch (error) {
      for (const path of written) await this.#files.remove(path).catch(() => {});
      throw error;
    }
    for await (const { path, type } of plan.entries()) {
      if (type === "directory" && !full.has(path)) lose(path, `${notKept}: it is an empty directory`);
    }
  }

  async #write(entry: PlannedEntry): Promise<void> {
    const writer = await this.#files.writer(entry.path);
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

async function readAll(content: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of content);
}

async function* partsOf(content: AsyncIterable<Uint8Array>, atMost: number): FileParts {
  const queue = new ByteQueue();
  let size = 0;
  for await (const chunk of content) {
    const wanted = chunk.subarray(0, atMost - size);
    queue.add(wanted);
    size += wanted.length;
    while (queue.length >= checkpointPartBytes) yield queue.take(checkpointPartBytes);
    if (wanted.length < chunk.length) break;
  }
  if (queue.length > 0) yield queue.take();
  return { state: undefined, isChanged: size !== atMost };
}
