import { checkpointPartBytes, type ExtractReceipt } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { Issues } from "../checkpoints/issues.ts";
import { Links } from "../checkpoints/links.ts";
import { ListedTree } from "../checkpoints/listed-tree.ts";
import { clampedTime } from "../checkpoints/modification-time.ts";
import type { PlannedEntry } from "../checkpoints/workspace-tree.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import { SpoolFile } from "../workspace/spool-file.ts";
import { normalizeWorkspacePath, outsideWorkspace } from "../workspace/workspace-path.ts";
import { archivedPath, ArchiveReader, invalid, mostEntries, type SpooledEntry, tooMany } from "./read-archive.ts";

/** Default limit on the files of an archive, 1 GiB. */
const defaultMaxBytes = 1_073_741_824;

/** What to unpack, and where. */
export interface ExtractRequest {
  readonly files: BackendFiles;
  readonly archive: AsyncIterable<Uint8Array>;
  /** The directory, relative to the workspace. */
  readonly path: string;
  readonly maxBytes: number | undefined;
  readonly signal: AbortSignal;
}

/** Unpacks an archive; see `WorkspaceFiles.extract`. */
export async function extractArchive(request: ExtractRequest): Promise<ExtractReceipt> {
  const { files, archive, path, signal, maxBytes = defaultMaxBytes } = request;
  const base = normalizeWorkspacePath(path);
  const spool = await SpoolFile.make();
  try {
    const read = await untilAborted(new ArchiveReader(archive, spool, maxBytes).read(), signal);
    const entries = placed(read, base === "." ? "" : `${base}/`);
    assertLinks(entries);
    signal.throwIfAborted();
    await makeParents(files, entries, base);
    const issues = new Issues();
    const planned = [...entries.values()];
    await (files.tree ?? new ListedTree(files)).create(
      {
        async *entries() {
          for (const entry of planned) {
            signal.throwIfAborted();
            yield plannedEntry(entry, spool);
          }
        },
      },
      (each, reason) => issues.add("file", each, reason),
    );
    const sizes = planned.filter(({ type }) => type === "file").map(({ size }) => size);
    return { files: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0), incomplete: issues.all };
  } finally {
    await spool.remove();
  }
}

/** The entries by their paths in the workspace; a later one replaces an earlier one. Parents come before what is in them. */
function placed(read: readonly SpooledEntry[], prefix: string): Map<string, SpooledEntry> {
  const entries = new Map<string, SpooledEntry>();
  for (const entry of read) {
    const name = archivedPath(entry.path);
    if (name === "") {
      if (entry.type !== "directory") throw invalid("an entry has no name");
      continue;
    }
    const path = normalizeWorkspacePath(`${prefix}${name}`);
    const before = entries.get(path);
    if (before && (before.type === "directory") !== (entry.type === "directory")) {
      throw invalid(`${JSON.stringify(name)} is a directory and something else`);
    }
    entries.set(path, { ...(entry.type === "hard" ? sameFile(entry, entries, prefix) : entry), path });
  }
  assertDirectories(entries);
  return new Map([...entries].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Checks that everything is in a directory, and that there are not too many of these. */
function assertDirectories(entries: ReadonlyMap<string, SpooledEntry>): void {
  const checked = new Set<string>();
  for (const path of entries.keys()) {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      const above = path.slice(0, slash);
      if (checked.has(above)) break;
      checked.add(above);
      if (checked.size > mostEntries) throw tooMany();
      if ((entries.get(above)?.type ?? "directory") !== "directory") {
        throw invalid(`${JSON.stringify(path)} is below something else`);
      }
    }
  }
}

/** Another name of an earlier file becomes a copy of it. */
function sameFile(entry: SpooledEntry, entries: ReadonlyMap<string, SpooledEntry>, prefix: string): SpooledEntry {
  const first = entries.get(`${prefix}${archivedPath(entry.target)}`);
  if (first?.type !== "file") {
    throw invalid(`${JSON.stringify(entry.path)} is another name of something that is not there`);
  }
  return { ...first, target: "" };
}

function assertLinks(entries: ReadonlyMap<string, SpooledEntry>): void {
  const found = [...entries.values()].filter(({ type }) => type === "link");
  const links = new Links(found, undefined);
  const out = found.find(({ path }) => links.targetInside(path) === undefined);
  if (out) throw outsideWorkspace(out.path);
}

/** Creates directories that the archive does not describe, which then have ordinary permissions. */
async function makeParents(
  files: BackendFiles,
  entries: ReadonlyMap<string, SpooledEntry>,
  base: string,
): Promise<void> {
  if (!files.features.includes("directories")) return;
  const missing = new Set(base === "." ? [] : [base]);
  for (const path of entries.keys()) {
    const above = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (above !== "" && entries.get(above)?.type !== "directory") missing.add(above);
  }
  for (const directory of missing) await files.makeDirectory(directory);
}

function plannedEntry(
  { path, type, mode, modifiedAt, target, size, at }: SpooledEntry,
  spool: SpoolFile,
): PlannedEntry {
  return {
    path,
    type: type === "hard" ? "file" : type,
    mode,
    modifiedAt: clampedTime(modifiedAt),
    target,
    size,
    content: () => spool.part(at, size, checkpointPartBytes),
  };
}
