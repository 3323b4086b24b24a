import { FileContent, Storage, StorageError } from "./storage.ts";

interface Entry {
  /** Unique in the tree, and never reused. */
  readonly id: number;
  mode: number;
  /** Milliseconds since 1970. */
  modifiedAt: number;
}

/** A directory of the tree. */
export interface Directory extends Entry {
  readonly kind: "directory";
  readonly entries: Map<string, Node>;
}

/** A regular file of the tree. */
export interface FileNode extends Entry {
  readonly kind: "file";
  readonly content: FileContent;
  /** Whether it has a name, and how often it is open. Its memory is freed when neither holds it. */
  named: boolean;
  opened: number;
}

/** A symbolic link of the tree. */
interface Link extends Entry {
  readonly kind: "link";
  readonly target: string;
}

/** Anything that has a name. */
export type Node = Directory | FileNode | Link;

/** What a name costs in bytes besides its characters, since a tree of empty files uses memory as well. */
const entryBytes = 512;
const longestName = 255;
/** Maximum depth of nested directories. For each operation, the interpreter looks up every part of a path. */
const deepest = 256;

/**
 * Files and directories in this process's memory. Paths are relative to the root, with `/` as the separator, and links
 * in them are not followed. The sandboxed code decides what is requested, so every operation is bounded, and fails with
 * a `StorageError`.
 */
export class Tree {
  readonly #storage: Storage;
  #nextId = 1;
  readonly root: Directory;
  /** How often the host itself has added or removed files; an interpreter that caches what it saw then looks again. */
  changes = 0;

  /** @param maxBytes - limit for content and names together. */
  constructor(maxBytes: number) {
    this.#storage = new Storage(maxBytes);
    this.root = { ...this.#newEntry(0o755), kind: "directory", entries: new Map() };
  }

  find(path: string): Node {
    let node: Node = this.root;
    for (const name of partsOf(path)) {
      const next: Node | undefined = directory(node).entries.get(name);
      if (!next) throw new StorageError("ENOENT");
      node = next;
    }
    return node;
  }

  makeFile(path: string, mode = 0o644): void {
    this.attach(path, this.makeDetached(mode));
  }

  /** Creates a file without a name, to be written before anyone can see it. */
  makeDetached(mode = 0o644): FileNode {
    const content = new FileContent(this.#storage);
    return { ...this.#newEntry(mode), kind: "file", content, named: false, opened: 0 };
  }

  /** Gives a file its name. */
  attach(path: string, file: FileNode): void {
    this.#add(path, file);
    file.named = true;
  }

  makeDirectory(path: string, mode = 0o755): void {
    this.#add(path, { ...this.#newEntry(mode), kind: "directory", entries: new Map() });
  }

  makeLink(path: string, target: string): void {
    if (target.length > 4096) throw new StorageError("ENAMETOOLONG");
    this.#storage.take(target.length);
    try {
      this.#add(path, { ...this.#newEntry(0o777), kind: "link", target });
    } catch (error) {
      this.#storage.give(target.length);
      throw error;
    }
  }

  /** Removes a file or a link. */
  unlink(path: string): void {
    const { parent, name, node } = this.#named(path);
    if (node.kind === "directory") throw new StorageError("EISDIR");
    this.#drop(parent, name, node);
  }

  removeDirectory(path: string): void {
    const { parent, name, node } = this.#named(path);
    if (directory(node).entries.size > 0) throw new StorageError("ENOTEMPTY");
    this.#drop(parent, name, node);
  }

  /** Removes whatever is at a path, with everything in it. */
  removeAll(path: string): void {
    const { parent, name, node } = this.#named(path);
    this.#empty(node);
    this.#drop(parent, name, node);
  }

  /** Renames an entry; replaces an existing file, and an existing directory only if it is empty. */
  rename(from: string, to: string): void {
    const source = this.#named(from);
    if (`${to}/`.startsWith(`${from}/`)) {
      if (to === from) return;
      throw new StorageError("EINVAL");
    }
    const { parent, name } = this.#parent(to);
    if (source.node.kind === "directory" && heightOf(source.node) + partsOf(to).length > deepest) {
      throw new StorageError("ENAMETOOLONG");
    }
    // Before anything is taken, because it may be refused.
    if (parent.entries.has(name)) {
      if (source.node.kind === "directory") this.removeDirectory(to);
      else this.unlink(to);
    }
    this.#storage.take(name.length);
    source.parent.entries.delete(source.name);
    parent.entries.set(name, source.node);
    this.#storage.give(source.name.length);
    source.parent.modifiedAt = Date.now();
    parent.modifiedAt = Date.now();
  }

  /** Counts one more user that has the file open. */
  open(file: FileNode): void {
    file.opened += 1;
  }

  close(file: FileNode): void {
    file.opened -= 1;
    this.#freeIfGone(file);
  }

  #newEntry(mode: number): Entry {
    this.#nextId += 1;
    return { id: this.#nextId, mode, modifiedAt: Date.now() };
  }

  #add(path: string, node: Node): void {
    const { parent, name } = this.#parent(path);
    if (parent.entries.has(name)) throw new StorageError("EEXIST");
    this.#storage.take(entryBytes + name.length);
    parent.entries.set(name, node);
    parent.modifiedAt = Date.now();
  }

  #drop(parent: Directory, name: string, node: Node): void {
    parent.entries.delete(name);
    parent.modifiedAt = Date.now();
    this.#storage.give(entryBytes + name.length);
    this.#release(node);
  }

  #empty(node: Node): void {
    if (node.kind !== "directory") return;
    for (const [name, each] of node.entries) {
      this.#empty(each);
      this.#drop(node, name, each);
    }
  }

  #release(node: Node): void {
    if (node.kind === "link") this.#storage.give(node.target.length);
    if (node.kind !== "file") return;
    node.named = false;
    this.#freeIfGone(node);
  }

  #freeIfGone(file: FileNode): void {
    if (!file.named && file.opened === 0) file.content.resize(0);
  }

  #named(path: string): { readonly parent: Directory; readonly name: string; readonly node: Node } {
    const { parent, name } = this.#parent(path);
    const node = parent.entries.get(name);
    if (!node) throw new StorageError("ENOENT");
    return { parent, name, node };
  }

  #parent(path: string): { readonly parent: Directory; readonly name: string } {
    const parts = partsOf(path);
    const name = parts.pop();
    if (name === undefined) throw new StorageError("EINVAL");
    return { parent: directory(this.find(parts.join("/"))), name };
  }
}

/** The names in a path; empty for the root. */
export function partsOf(path: string): string[] {
  if (path === "" || path === ".") return [];
  const parts = path.split("/");
  if (parts.length > deepest) throw new StorageError("ENAMETOOLONG");
  for (const part of parts) {
    if (part === "" || part === "." || part === ".." || part.includes("\0")) throw new StorageError("EINVAL");
    if (Buffer.byteLength(part) > longestName) throw new StorageError("ENAMETOOLONG");
  }
  return parts;
}

/** @throws StorageError if it is not a directory. */
function directory(node: Node): Directory {
  if (node.kind !== "directory") throw new StorageError("ENOTDIR");
  return node;
}

function heightOf(node: Node): number {
  if (node.kind !== "directory") return 1;
  let most = 0;
  for (const each of node.entries.values()) most = Math.max(most, heightOf(each));
  return most + 1;
}
