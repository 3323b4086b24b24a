import * as z from "zod";
import { StorageError } from "./storage.ts";
import type { FileNode, Node, Tree } from "./tree.ts";

const path = z.string().max(16_384);
const handle = z.int().nonnegative();
/** Which of the interpreter's trees a path is in. Default: the session's files. */
const tree = z.int().min(0).max(1).exactOptional();
const place = { path: path.exactOptional(), tree, handle: handle.exactOptional() };
/** Offsets and sizes, up to the largest safe integer. */
const offset = z.int().nonnegative();
const mode = z.int().min(0).max(0o777);
/** The latest time that a `Date` can represent, in milliseconds since 1970. */
const latest = 8_640_000_000_000_000;
const time = z.number().min(-latest).max(latest);

/** Everything that an interpreter may request. Any other request is answered with EINVAL. */
const request = z.discriminatedUnion("op", [
  z.object({ op: z.literal("stat"), ...place }),
  z.object({
    op: z.literal("change"),
    ...place,
    mode: mode.exactOptional(),
    size: offset.exactOptional(),
    modifiedAt: time.exactOptional(),
  }),
  z.object({ op: z.literal("make"), path, tree, kind: z.enum(["file", "directory"]), mode }),
  z.object({ op: z.literal("link"), path, tree, target: path }),
  z.object({ op: z.literal("target"), path, tree }),
  z.object({ op: z.literal("rename"), path, tree, to: path }),
  z.object({ op: z.enum(["unlink", "rmdir", "open"]), path, tree }),
  z.object({ op: z.literal("list"), path, tree, from: z.int().nonnegative().exactOptional() }),
  z.object({ op: z.literal("close"), handle }),
  z.object({ op: z.literal("read"), handle, at: offset, length: offset.max(1_048_576) }),
  z.object({ op: z.literal("write"), handle, at: offset }),
]);
type Request = z.infer<typeof request>;

/** An answer to a request of an interpreter: fields, and perhaps bytes. */
export interface Answer {
  readonly fields: object;
  readonly bytes?: Uint8Array;
}

const mostOpenFiles = 1024;
/** Maximum number of names in one answer. */
const mostNames = 4096;
const typeBits = { directory: 0o40_000, file: 0o100_000, link: 0o120_000 } as const;

/** Answers one interpreter's requests about files. */
export class FileRequests {
  readonly #trees: readonly Tree[];
  readonly #open = new Map<number, { readonly tree: Tree; readonly file: FileNode }>();
  #nextHandle = 1;
  #seenChanges = 0;

  /** @param trees - the session's files, and optionally those of the interpreter alone. */
  constructor(...trees: readonly Tree[]) {
    this.#trees = trees;
  }

  answer(fields: unknown, bytes: Uint8Array): Answer {
    const asked = request.safeParse(fields);
    if (!asked.success) return { fields: { error: "EINVAL" } };
    const changes = this.#trees[0]?.changes ?? 0;
    const changed = changes > this.#seenChanges ? { changed: true } : {};
    this.#seenChanges = changes;
    try {
      const { fields: given, ...rest } = this.#perform(asked.data, bytes);
      return { fields: { ...given, ...changed }, ...rest };
    } catch (error) {
      if (error instanceof StorageError) return { fields: { error: error.code, ...changed } };
      throw error;
    }
  }

  /** Closes the files that the interpreter has open. */
  end(): void {
    for (const { tree: from, file } of this.#open.values()) from.close(file);
    this.#open.clear();
  }

  #perform(asked: Request, bytes: Uint8Array): Answer {
    if (asked.op === "read" || asked.op === "write" || asked.op === "close") return this.#useHandle(asked, bytes);
    const from = this.#tree(asked.tree);
    switch (asked.op) {
      case "stat":
        return { fields: attributes(this.#node(asked)) };
      case "change":
        change(this.#node(asked), asked);
        return done;
      case "make":
        if (asked.kind === "file") from.makeFile(asked.path, asked.mode);
        else from.makeDirectory(asked.path, asked.mode);
        return done;
      case "link":
        from.makeLink(asked.path, asked.target);
        return done;
      case "target":
        return { fields: { target: linkTarget(from.find(asked.path)) } };
      case "rename":
        from.rename(asked.path, asked.to);
        return done;
      case "unlink":
        from.unlink(asked.path);
        return done;
      case "rmdir":
        from.removeDirectory(asked.path);
        return done;
      case "list":
        return { fields: names(from.find(asked.path), asked.from) };
      default:
        return { fields: { handle: this.#openFile(from, from.find(asked.path)) } };
    }
  }

  #useHandle(asked: Extract<Request, { op: "read" | "write" | "close" }>, bytes: Uint8Array): Answer {
    const { tree: from, file } = this.#opened(asked.handle);
    switch (asked.op) {
      case "read":
        return { fields: {}, bytes: file.content.read(asked.at, asked.length) };
      case "write":
        file.content.write(asked.at, bytes);
        file.modifiedAt = Date.now();
        return done;
      default:
        this.#open.delete(asked.handle);
        from.close(file);
        return done;
    }
  }

  #openFile(from: Tree, node: Node): number {
    if (node.kind !== "file") throw new StorageError(node.kind === "directory" ? "EISDIR" : "ELOOP");
    if (this.#open.size >= mostOpenFiles) throw new StorageError("EMFILE");
    from.open(node);
    const number = this.#nextHandle;
    this.#nextHandle += 1;
    this.#open.set(number, { tree: from, file: node });
    return number;
  }

  #node(asked: { readonly path?: string; readonly tree?: number; readonly handle?: number }): Node {
    if (asked.handle !== undefined) return this.#opened(asked.handle).file;
    return this.#tree(asked.tree).find(asked.path ?? "");
  }

  #tree(number = 0): Tree {
    const found = this.#trees[number];
    if (!found) throw new StorageError("EINVAL");
    return found;
  }

  #opened(number: number): { readonly tree: Tree; readonly file: FileNode } {
    const found = this.#open.get(number);
    if (!found) throw new StorageError("EBADF");
    return found;
  }
}

const done: Answer = { fields: {} };

function attributes(node: Node): object {
  const size = node.kind === "file" ? node.content.size : node.kind === "link" ? node.target.length : 4096;
  return { id: node.id, mode: typeBits[node.kind] | node.mode, size, modifiedAt: node.modifiedAt };
}

function change(node: Node, changes: Extract<Request, { op: "change" }>): void {
  const entry: Node = node;
  if (changes.size !== undefined) {
    if (entry.kind !== "file") throw new StorageError("EISDIR");
    entry.content.resize(changes.size);
    entry.modifiedAt = Date.now();
  }
  if (changes.mode !== undefined) entry.mode = changes.mode;
  if (changes.modifiedAt !== undefined) entry.modifiedAt = changes.modifiedAt;
}

function linkTarget(node: Node): string {
  if (node.kind !== "link") throw new StorageError("EINVAL");
  return node.target;
}

/** Some of a directory's names; `more` if others follow. */
function names(node: Node, from = 0): { readonly names: readonly string[]; readonly more?: true } {
  if (node.kind !== "directory") throw new StorageError("ENOTDIR");
  const listed: string[] = [];
  let at = 0;
  for (const name of node.entries.keys()) {
    if (listed.length === mostNames) return { names: listed, more: true };
    if (at >= from) listed.push(name);
    at += 1;
  }
  return { names: listed };
}
