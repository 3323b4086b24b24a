import { createHash } from "node:crypto";
import {
  CheckpointError,
  type CheckpointEntry,
  type CheckpointFile,
  type CheckpointPart,
  checkpointPartBytes,
  type SavedCheckpoint,
} from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import type { BackendFiles } from "../workspace/backend-files.ts";
import { normalizeWorkspacePath } from "../workspace/workspace-path.ts";
import type { Issues } from "./issues.ts";
import { Links } from "./links.ts";
import { ListedTree } from "./listed-tree.ts";
import { clampedTime } from "./modification-time.ts";
import type { PlannedEntry, TreePlan } from "./workspace-tree.ts";

/** Parts of one file that are read before they are needed. */
const partsAhead = 4;
/** Files whose first part is read before they are needed, for places that create one file after another. */
const filesAhead = 16;

const emptyPart: string = createHash("sha256").update(new Uint8Array(checkpointPartBytes)).digest("hex");

/** How files are restored. */
interface RestoreConditions {
  readonly issues: Issues;
  readonly signal: AbortSignal;
}

/** How much of the files came back. */
interface RestoredFiles {
  /** All files of the checkpoint, by path. */
  readonly found: ReadonlyMap<string, CheckpointFile>;
  readonly files: number;
  readonly bytes: number;
}

/**
 * Creates the files of a checkpoint in a workspace, over what is there.
 *
 * @throws CheckpointError if something in the store is missing or damaged; nothing has changed then.
 */
export async function restoreFiles(
  saved: SavedCheckpoint,
  files: BackendFiles,
  { issues, signal }: RestoreConditions,
): Promise<RestoredFiles> {
  const tree = files.tree ?? new ListedTree(files);
  await checkLinks(saved, signal);
  const lost = new Set<string>();
  const plan = new Plan(saved, signal);
  await tree.create(plan, (path, reason) => {
    lost.add(path);
    issues.add("file", path, reason);
  });
  const back = [...plan.files.values()].filter(({ path }) => !lost.has(path));
  return { found: plan.files, files: back.length, bytes: back.reduce((sum, { size }) => sum + size, 0) };
}

class Plan implements TreePlan {
  readonly #saved: SavedCheckpoint;
  readonly #signal: AbortSignal;
  /** The files, by path, once the entries have been read. */
  readonly files = new Map<string, CheckpointFile>();

  constructor(saved: SavedCheckpoint, signal: AbortSignal) {
    this.#saved = saved;
    this.#signal = signal;
  }

  async *entries(): AsyncGenerator<PlannedEntry, void, void> {
    const ahead: PlannedEntry[] = [];
    const entries = this.#saved.entries()[Symbol.asyncIterator]();
    for (let ended = false; !ended || ahead.length > 0;) {
      if (!ended && ahead.length <= filesAhead) {
        const next = await untilAborted(entries.next(), this.#signal);
        if (next.done === true) ended = true;
        else ahead.push(this.#planned(checked(next.value)));
        continue;
      }
      const next = ahead.shift();
      if (next) yield next;
    }
  }

  #planned(entry: CheckpointEntry): PlannedEntry {
    const { path, mode, type } = entry;
    const modifiedAt = clampedTime(entry.modifiedAt);
    const common = { path, mode: mode & 0o777, modifiedAt, type, target: "", size: 0, content: empty };
    if (entry.type === "link") return { ...common, target: entry.target };
    if (entry.type !== "file") return common;
    this.files.set(entry.path, entry);
    const { parts } = entry;
    const first = parts.slice(0, 1).map((part) => this.#load(part));
    return { ...common, size: entry.size, content: () => this.#content(parts, first) };
  }

  async *#content(
    parts: readonly CheckpointPart[],
    first: readonly Promise<Uint8Array | "hole">[],
  ): AsyncGenerator<Uint8Array | "hole", void, void> {
    const loading = [...first];
    for (let next = loading.length; loading.length > 0;) {
      for (; loading.length < partsAhead && next < parts.length; next += 1) {
        const part = parts[next];
        if (part) loading.push(this.#load(part));
      }
      const loaded = loading.shift();
      if (loaded) yield await untilAborted(loaded, this.#signal);
    }
  }

  #load(part: CheckpointPart): Promise<Uint8Array | "hole"> {
    if (part.hash === emptyPart) return Promise.resolve("hole");
    const loading = this.#saved.content(part);
    // It may fail before anybody waits for it, or after everybody has left.
    loading.catch(() => {});
    return loading;
  }
}

/** @throws CheckpointError if a link leads out of the workspace, by itself or through other links of the checkpoint. */
async function checkLinks(saved: SavedCheckpoint, signal: AbortSignal): Promise<void> {
  const found: { readonly path: string; readonly target: string }[] = [];
  for await (const entry of saved.entries()) {
    signal.throwIfAborted();
    if (entry.type === "link") found.push(entry);
  }
  const links = new Links(found, undefined);
  const out = found.find(({ path }) => links.targetInside(path) === undefined);
  if (out) throw notWritten("a link that leads out", out.path);
}

async function* empty(): AsyncGenerator<never, void, void> {}

/** @throws CheckpointError if nothing that Fenced wrote can have this path. */
function checked(entry: CheckpointEntry): CheckpointEntry {
  let normal: string | undefined;
  try {
    normal = normalizeWorkspacePath(entry.path);
  } catch {}
  if (normal === entry.path && normal !== ".") return entry;
  throw notWritten("an entry with the path", entry.path);
}

function notWritten(what: string, path: string): CheckpointError {
  return new CheckpointError(`The checkpoint has ${what} ${JSON.stringify(path.slice(0, 100))}`, {
    remedy: "It was not written by Fenced: use another checkpoint.",
  });
}
