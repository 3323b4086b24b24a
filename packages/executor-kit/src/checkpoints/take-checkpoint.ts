import {
  type CheckpointEntry,
  type CheckpointPart,
  type CheckpointReceipt,
  type CheckpointStore,
  type CheckpointVariables,
  type CheckpointWriter,
  BackendUnavailableError,
  checkpointPartBytes,
} from "@fenced/core";
import { AtOnce } from "../workspace/at-once.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import { Issues } from "./issues.ts";
import type { KeptFile, KeptFiles } from "./kept-files.ts";
import { Links } from "./links.ts";
import { byPath, listTree } from "./list-tree.ts";
import { ListedTree } from "./listed-tree.ts";
import type { FileEnd, FileParts, TreeEntry, WantedFile, WorkspaceTree } from "./workspace-tree.ts";

/** Parts that are stored at the same time. */
const partsAtOnce = 8;
/** How often to read a file that changes while it is read. */
const mostReads = 3;
/** Default limit on all files together, 16 GiB. */
const defaultMaxBytes = 17_179_869_184;

/** What to keep, and where. */
export interface CheckpointRequest {
  readonly store: CheckpointStore;
  readonly files: BackendFiles;
  /** Absolute path of the workspace, as programs see it, if it is known. */
  readonly workspacePath: string | undefined;
  readonly maxBytes: number | undefined;
  readonly signal: AbortSignal;
  /** Keeps the variables, if they are wanted. */
  readonly variables?: ((writer: CheckpointWriter, issues: Issues) => Promise<CheckpointVariables>) | undefined;
  /** What earlier checkpoints have kept. */
  readonly kept: KeptFiles;
}

/** Keeps the files of a workspace. */
export async function takeCheckpoint(request: CheckpointRequest): Promise<CheckpointReceipt> {
  const { store, files, kept, signal, workspacePath, maxBytes = defaultMaxBytes } = request;
  const before = kept.in(store);
  await using writer = await store.begin({ after: before.id });
  const issues = new Issues();
  const variables = await request.variables?.(writer, issues);
  const tree = files.tree ?? new ListedTree(files);
  const found = await listTree(tree, signal);
  const taken = new TakenFiles({ writer, before: before.files, issues, signal });
  await taken.take(tree, withinLimit(found, maxBytes, issues), maxBytes);
  const entries = entriesOf(found, { taken: taken.files, workspacePath, issues });
  signal.throwIfAborted();
  const incomplete = issues.all;
  const { id, newBytes } = await writer.commit({ entries, variables, incomplete });
  kept.remember(store, { id, files: taken.files });
  const ofFiles = entries.filter((entry) => entry.type === "file");
  return {
    id,
    files: ofFiles.length,
    bytes: ofFiles.reduce((sum, { size }) => sum + size, 0),
    newBytes,
    variables: variables?.variables.map(({ name }) => name) ?? [],
    incomplete,
  };
}

/** The files that have room within `maxBytes`. */
function withinLimit(found: readonly TreeEntry[], maxBytes: number, issues: Issues): TreeEntry[] {
  let left = maxBytes;
  return found.filter(({ type, path, size }) => {
    if (type !== "file") return false;
    if (size <= left) {
      left -= size;
      return true;
    }
    issues.add("file", path, `All files together are larger than \`maxBytes\`, ${maxBytes} bytes`);
    return false;
  });
}

interface TakingConditions {
  readonly writer: CheckpointWriter;
  /** What the last checkpoint has kept. */
  readonly before: ReadonlyMap<string, KeptFile>;
  readonly issues: Issues;
  readonly signal: AbortSignal;
}

interface FileToRead extends WantedFile {
  readonly before: readonly CheckpointPart[];
}

/** The content of files, as it is taken: only of those that have changed. */
class TakenFiles {
  readonly files = new Map<string, KeptFile>();
  readonly #conditions: TakingConditions;
  readonly #storing = new AtOnce(partsAtOnce);

  constructor(conditions: TakingConditions) {
    this.#conditions = conditions;
  }

  async take(tree: WorkspaceTree, found: readonly TreeEntry[], maxBytes: number): Promise<void> {
    const { issues } = this.#conditions;
    let left = maxBytes - found.reduce((sum, { size }) => sum + size, 0);
    let wanted = await this.#withoutKept(found);
    try {
      for (let round = 1; wanted.length > 0; round += 1) {
        const changed: FileToRead[] = [];
        await tree.read(wanted, async (file, content) => {
          if (content === "unreadable") issues.add("file", file.path, "It could not be read");
          if (typeof content === "string") {
            // What an earlier round read may be a mixture.
            this.files.delete(file.path);
            return;
          }
          const end = await this.#takeContent(file, content);
          if (!end.isChanged) return;
          const more = Math.max(0, end.size - file.size);
          if (round < mostReads && more <= left) {
            left -= more;
            changed.push({ ...file, size: end.size });
          } else issues.add("file", file.path, "It changed while it was read, so its content may be a mixture");
        });
        wanted = changed;
      }
      await this.#storing.finish();
    } finally {
      await this.#storing.settle();
    }
  }

  /** Takes over what has not changed since the last checkpoint; returns the other files. */
  async #withoutKept(found: readonly TreeEntry[]): Promise<FileToRead[]> {
    const { before, writer, signal } = this.#conditions;
    const others: FileToRead[] = [];
    for (const { path, size, state } of found) {
      signal.throwIfAborted();
      const kept = before.get(path);
      const parts = kept && (await hasAll(writer, kept.parts)) ? kept.parts : [];
      const isSame = kept !== undefined && state !== undefined && kept.state === state;
      if (isSame && sizeOf(parts) === size) this.files.set(path, kept);
      else others.push({ path, size, before: parts, known: parts.map(({ hash }) => hash) });
    }
    return others;
  }

  async #takeContent(file: FileToRead, content: FileParts): Promise<FileEnd> {
    const { writer, signal } = this.#conditions;
    const parts: CheckpointPart[] = [];
    let size = 0;
    for (let index = 0; ; index += 1) {
      const { value, done } = await content.next();
      signal.throwIfAborted();
      if (done === true) {
        this.files.set(file.path, { parts, state: value.state });
        return value;
      }
      const same = file.before[index];
      // The place may be forged: only the last part may be short, and there is no more than was asked for.
      if (size !== index * checkpointPartBytes) throw notAnAnswer(file.path);
      size += value === "same" ? (same?.size ?? 0) : value.length;
      if (size > file.size) throw notAnAnswer(file.path);
      if (value === "same") {
        if (!same) throw notAnAnswer(file.path);
        parts[index] = same;
      } else {
        await this.#storing.start(async () => {
          parts[index] = await writer.put(value);
        });
      }
    }
  }
}

async function hasAll(writer: CheckpointWriter, parts: readonly CheckpointPart[]): Promise<boolean> {
  for (const part of parts) if (!(await writer.has(part))) return false;
  return true;
}

function sizeOf(parts: readonly CheckpointPart[]): number {
  return parts.reduce((sum, { size }) => sum + size, 0);
}

interface EntryConditions {
  readonly taken: ReadonlyMap<string, KeptFile>;
  readonly workspacePath: string | undefined;
  readonly issues: Issues;
}

/** What the checkpoint has of them, with the directories that they are in, sorted by path. */
function entriesOf(found: readonly TreeEntry[], { taken, workspacePath, issues }: EntryConditions): CheckpointEntry[] {
  const links = new Links(
    found.flatMap(({ type, path, target }) => (type === "link" && target !== undefined ? [{ path, target }] : [])),
    workspacePath,
  );
  const entries = new Map<string, CheckpointEntry>();
  for (const entry of found) {
    const kept = entryOf(entry, taken.get(entry.path), links.targetInside(entry.path));
    if (typeof kept === "string") issues.add("file", entry.path, kept);
    else if (kept) addWithDirectories(entries, kept);
  }
  return [...entries.values()].toSorted(byPath);
}

/** @returns a sentence that says why it is left out; `undefined` for a file that is gone, or is listed already. */
function entryOf(
  { type, path, mode, modifiedAt }: TreeEntry,
  kept: KeptFile | undefined,
  target: string | undefined,
): CheckpointEntry | string | undefined {
  const common = { path, mode, modifiedAt };
  switch (type) {
    case "file":
      return kept && { ...common, type, size: sizeOf(kept.parts), parts: kept.parts };
    case "directory":
      return { ...common, type };
    case "link":
      return target === undefined ? "It is a link that leads out of the workspace" : { ...common, type, target };
    case "other":
      return "It is a pipe, a socket or a device";
    default:
      return "It could not be looked at, nor what may be in it";
  }
}

/** Adds the directories that have not been listed, too: some places list only files. */
function addWithDirectories(entries: Map<string, CheckpointEntry>, entry: CheckpointEntry): void {
  const missing: string[] = [];
  for (let above = directoryOf(entry.path); above !== ""; above = directoryOf(above)) {
    const there = entries.get(above);
    if (there?.type === "directory") break;
    // A place that says that something is below a file is lying.
    if (there) return;
    missing.push(above);
  }
  for (const path of missing) entries.set(path, { type: "directory", path, mode: 0o755, modifiedAt: entry.modifiedAt });
  const there = entries.get(entry.path);
  if (!there || there.type === entry.type) entries.set(entry.path, entry);
}

function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function notAnAnswer(path: string): BackendUnavailableError {
  return new BackendUnavailableError(
    `The answer about the content of ${JSON.stringify(path)} does not match the request`,
    {
      remedy: "Code may have interfered with the request. Call restart(), and try again.",
    },
  );
}
