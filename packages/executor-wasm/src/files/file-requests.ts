import * as z from "zod";
import { StorageError } from "./storage.ts";
import type { FileNode, Node, Tree } from "./tree.ts";

const path = z.string().max(16_384);
const handle = z.int().nonnegative();
const place = { path: path.exactOptional(), handle: handle.exactOptional() };
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
  z.object({ op: z.literal("make"), path, kind: z.enum(["file", "directory"]), mode }),
  z.object({ op: z.literal("link"), path, target: path }),
  z.object({ op: z.literal("target"), path }),
  z.object({ op: z.literal("rename"), path, to: path }),
  z.object({ op: z.enum(["unlink", "rmdir", "open"]), path }),
  z.object({ op: z.literal("list"), path, from: z.int().nonnegative().exactOptional() }),
  z.object({ op: z.literal("close"), handle }),
  z.object({ op: z.literal("read"), handle, at: offset, length: offset.max(1_048_576) }),
  z.object({ op: z.literal("write"), handle, at: offset }),
]);
type Request = z.infer<typeof request>;

/** The result of an operation: fields, or bytes. */
interface Answer {
  readonly fields: object;
  readonly bytes?: Uint8Array;
}

const mostOpenFiles = 1024;
/** Maximum number of names in one answer. */
const mostNames = 4096;
const typeBits = { directory: 0o40_000, file: 0o100_000, link: 0o120_000 } as const;

/** Answers one interpreter's requests about files. */
export class FileRequests {
  readonly #tree: Tree;
  readonly #open = new Map<number, FileNode>();
  #nextHandle = 1;
  #seenChanges = 0;

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  answer(fields: unknown, bytes: Uint8Array): Answer {
    const asked = request.safeParse(fields);
    if (!asked.success) return { fields: { error: "EINVAL" } };
    const changed = this.#tree.changes > this.#seenChanges ? { changed: true } : {};
    this.#seenChanges = this.#tree.changes;
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
    for (const file of this.#open.values()) this.#tree.close(file);
    this.#open.clear();
  }

  #perform(asked: Request, bytes: Uint8Array): Answer {
    switch (asked.op) {
      case "stat":
        return { fields: attributes(this.#node(asked)) };
      case "change":
        change(this.#node(asked), asked);
        return done;
      case "make":
        if (asked.kind === "file") this.#tree.makeFile(asked.path, asked.mode);
        else this.#tree.makeDirectory(asked.path, asked.mode);
        return done;
      case "link":
        this.#tree.makeLink(asked.path, asked.target);
        return done;
      case "target":
        return { fields: { target: linkTarget(this.#tree.find(asked.path)) } };
      case "rename":
        this.#tree.rename(asked.path, asked.to);
        return done;
      case "unlink":
        this.#tree.unlink(asked.path);
        return done;
      case "rmdir":
        this.#tree.removeDirectory(asked.path);
        return done;
      case "list":
        return { fields: names(this.#tree.find(asked.path), asked.from) };
      case "open":
        return { fields: { handle: this.#openFile(this.#tree.find(asked.path)) } };
      default:
        return this.#useHandle(asked, bytes);
    }
  }

  #useHandle(asked: Extract<Request, { op: "read" | "write" | "close" }>, bytes: Uint8Array): Answer {
    const file = this.#file(asked.handle);
    switch (asked.op) {
      case "read":
        return { fields: {}, bytes: file.content.read(asked.at, asked.length) };
      case "write":
        file.content.write(asked.at, bytes);
        file.modifiedAt = Date.now();
        return done;
      default:
        this.#open.delete(asked.handle);
        this.#tree.close(file);
        return done;
    }
  }

  #openFile(node: Node): number {
    if (node.kind !== "file") throw new StorageError(node.kind === "directory" ? "EISDIR" : "ELOOP");
    if (this.#open.size >= mostOpenFiles) throw new StorageError("EMFILE");
    this.#tree.open(node);
    const number = this.#nextHandle;
    this.#nextHandle += 1;
    this.#open.set(number, node);
    return number;
  }

  #node(asked: { readonly path?: string; readonly handle?: number }): Node {
    if (asked.handle !== undefined) return this.#file(asked.handle);
    return this.#tree.find(asked.path ?? "");
  }

  #file(number: number): FileNode {
    const file = this.#open.get(number);
    if (!file) throw new StorageError("EBADF");
    return file;
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
