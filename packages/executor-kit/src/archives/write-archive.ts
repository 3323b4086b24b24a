import { InvalidInputError } from "@fenced/core";
import { Links } from "../checkpoints/links.ts";
import { listTree } from "../checkpoints/list-tree.ts";
import { ListedTree } from "../checkpoints/listed-tree.ts";
import type { FileParts, TreeEntry } from "../checkpoints/workspace-tree.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import { normalizeWorkspacePath } from "../workspace/workspace-path.ts";
import { encodeTarEntry, padding, tarBlock, type TarEntry } from "./tar-header.ts";

/** Zeros that are written at once for what is missing of a file. */
const zeros = Buffer.alloc(65_536);

/** What to pack. */
export interface ArchiveRequest {
  readonly files: BackendFiles;
  /** The directory, relative to the workspace. */
  readonly path: string;
  /** Absolute path of the workspace, as programs see it, if it is known. */
  readonly workspacePath: string | undefined;
  readonly signal: AbortSignal;
}

/** Packs a directory; see `WorkspaceFiles.archive`. */
export async function* writeArchive(request: ArchiveRequest): AsyncGenerator<Uint8Array, void, void> {
  const entries = await entriesOf(request);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const done = packAll(request, entries, writer).then(
    () => writer.close(),
    (error: unknown) => writer.abort(error),
  );
  // The reader learns of it.
  done.catch(() => {});
  yield* readable;
  await done;
}

/** An entry with its path in the archive. */
interface PackedEntry extends TreeEntry {
  readonly name: string;
  readonly target: string;
}

/** Everything below the directory, sorted by path, so that directories precede what is in them. */
async function entriesOf({ files, path, workspacePath, signal }: ArchiveRequest): Promise<PackedEntry[]> {
  const base = normalizeWorkspacePath(path);
  const found = await files.stat(base);
  const all = await listTree(files.tree ?? new ListedTree(files), signal);
  const links = new Set(all.filter(({ type }) => type === "link").map((entry) => entry.path));
  const parts = base.split("/");
  const throughLink = parts.some((_, index) => links.has(parts.slice(0, index + 1).join("/")));
  if (found.type !== "directory" || throughLink) throw notADirectory(path);
  const prefix = base === "." ? "" : `${base}/`;
  const below = all
    .filter((entry) => entry.path.startsWith(prefix) && entry.type !== "other")
    .map((entry) => ({ ...entry, name: entry.path.slice(prefix.length), target: entry.target ?? "" }));
  const top = workspacePath === undefined ? undefined : `${workspacePath}/${prefix}`.replace(/\/+$/, "");
  const inside = new Links(
    below.filter(({ type }) => type === "link").map(({ name, target }) => ({ path: name, target })),
    top,
  );
  return below.flatMap((entry) => {
    if (entry.type !== "link") return [entry];
    const target = inside.targetInside(entry.name);
    return target === undefined ? [] : [{ ...entry, target }];
  });
}

type Writer = WritableStreamDefaultWriter<Uint8Array>;

async function packAll(
  { files, signal }: ArchiveRequest,
  entries: readonly PackedEntry[],
  writer: Writer,
): Promise<void> {
  const write = async (bytes: Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    await writer.ready;
    await writer.write(bytes);
  };
  for (const entry of entries) {
    if (entry.type === "unknown") throw unreadable(entry.path);
    if (entry.type === "directory" || entry.type === "link") {
      await write(encodeTarEntry({ ...packed(entry), type: entry.type, size: 0 }));
    }
  }
  const tree = files.tree ?? new ListedTree(files);
  const wanted = entries.filter(({ type }) => type === "file").map((entry) => ({ ...entry, known: [] }));
  let last: Promise<void> = Promise.resolve();
  await tree.read(wanted, async (file, content) => {
    // A tree may read several at once, but an archive has one after another.
    const own = last.then(() => packFile(file, content, write));
    last = own;
    own.catch(() => {});
    await own;
  });
  await write(Buffer.alloc(2 * tarBlock));
}

function packed({ name, mode, modifiedAt, target }: PackedEntry): Omit<TarEntry, "type" | "size"> {
  return { path: name, mode, modifiedAt, target };
}

async function packFile(
  file: PackedEntry,
  content: FileParts | "gone" | "unreadable",
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  if (content === "unreadable") throw unreadable(file.path);
  if (content === "gone") return;
  const { size } = file;
  await write(encodeTarEntry({ ...packed(file), type: "file", size }));
  let left = size;
  for await (const part of content) {
    if (part === "same" || left === 0) continue;
    // Their memory is used again.
    const piece = Uint8Array.from(part.subarray(0, left));
    left -= piece.length;
    await write(piece);
  }
  for (; left > 0; left -= Math.min(left, zeros.length)) await write(zeros.subarray(0, left));
  const rest = padding(size);
  if (rest.length > 0) await write(rest);
}

function notADirectory(path: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(path)} is not a directory, or is reached through a link`, {
    remedy: "Name a directory itself; `files.list(undefined, { directories: true })` shows which there are.",
  });
}

function unreadable(path: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(path)} cannot be read, so it cannot be packed`, {
    remedy: "Change its permissions in a block (`chmod`), or pack another directory.",
  });
}
