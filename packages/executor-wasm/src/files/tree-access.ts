import {
  type FileEntry,
  type FileFeature,
  FileNotFoundError,
  type FileStat,
  InvalidInputError,
  type ListOptions,
  WorkspacePathError,
} from "@fenced/core";
import { allFileFeatures, type FileContent, inTheWayOf, modifiedAt, type RemoteFileAccess } from "@fenced/executor-kit";
import { StorageError } from "./storage.ts";
import { partsOf, type Directory, type FileNode, type Node, type Tree } from "./tree.ts";

/** The path at which the code sees the tree. */
export const workspacePath = "/workspace";

const mostLinks = 40;
const pieceBytes = 1_048_576;

/** The files of a session as the host's own calls use them: follows links, but never out of the tree. */
export class TreeAccess implements RemoteFileAccess {
  readonly seeks = true;
  readonly measurable = true;
  readonly features: readonly FileFeature[] = allFileFeatures;
  readonly #tree: Tree;

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  async *list(directory: string, { recursive = true }: ListOptions = {}): AsyncGenerator<FileEntry, void, void> {
    const path = this.#follow(directory);
    const node = this.#find(path, directory);
    if (node.kind !== "directory") throw new FileNotFoundError(`${quote(directory)} is not a directory`, { remedy });
    yield* entriesBelow(node, path === "" ? "" : `${path}/`, recursive);
  }

  async stat(file: string, followLinks: boolean): Promise<FileStat> {
    const itself = this.#find(this.#followAbove(file), file);
    const node = followLinks ? this.#find(this.#follow(file), file) : itself;
    const common = { path: file, mode: node.mode & 0o777, ...modifiedAt(node.modifiedAt) };
    const link = itself.kind === "link" ? { linkTarget: itself.target } : {};
    if (node.kind === "file") return { ...common, ...link, type: "file", size: node.content.size };
    if (node.kind === "link") return { ...common, ...link, type: "link", size: Buffer.byteLength(node.target) };
    return { ...common, ...link, type: "directory", size: 0 };
  }

  async *content(file: string, start: number): AsyncGenerator<Uint8Array, void, void> {
    const node = this.#find(this.#follow(file), file);
    if (node.kind !== "file") {
      throw new InvalidInputError(`${quote(file)} is a directory`, { remedy: "Pass the path of a file in it." });
    }
    this.#tree.open(node);
    try {
      for (let at = start; at < node.content.size; at += pieceBytes) yield node.content.read(at, pieceBytes);
    } finally {
      this.#tree.close(node);
    }
  }

  async put(file: string, content: FileContent, mode?: number): Promise<void> {
    const path = this.#follow(file);
    const temporary = this.#tree.makeDetached();
    try {
      let at = 0;
      for await (const piece of content) {
        temporary.content.write(at, piece);
        at += piece.length;
      }
      const replaced = this.#has(path) ? this.#tree.find(path) : undefined;
      temporary.mode = mode ?? (replaced?.kind === "file" ? replaced.mode : temporary.mode);
      this.#place(path, temporary);
    } catch (error) {
      temporary.content.resize(0);
      throw asInputError(error, file);
    }
  }

  async move(from: string, to: string): Promise<void> {
    const source = this.#followAbove(from);
    const moved = this.#find(source, from);
    const target = this.#followAbove(to);
    try {
      const replaced = this.#has(target) ? this.#tree.find(target) : undefined;
      if (replaced !== moved && replaced && (replaced.kind === "directory" || moved.kind === "directory")) {
        throw inTheWayOf(to);
      }
      this.#makeDirectories(partsOf(target).slice(0, -1));
      this.#tree.rename(source, target);
      this.#tree.changes += 1;
    } catch (error) {
      throw asInputError(error, to);
    }
  }

  async makeDirectory(path: string): Promise<void> {
    try {
      this.#makeDirectories(partsOf(this.#follow(path)));
      this.#tree.changes += 1;
    } catch (error) {
      throw asInputError(error, path);
    }
  }

  async remove(file: string): Promise<void> {
    try {
      this.#tree.removeAll(this.#followAbove(file));
      this.#tree.changes += 1;
    } catch (error) {
      throw asFileError(error, file);
    }
  }

  #place(path: string, file: FileNode): void {
    this.#makeDirectories(partsOf(path).slice(0, -1));
    if (this.#has(path)) this.#tree.unlink(path);
    this.#tree.attach(path, file);
    this.#tree.changes += 1;
  }

  #makeDirectories(parts: readonly string[]): void {
    for (const [index] of parts.entries()) {
      const path = parts.slice(0, index + 1).join("/");
      if (!this.#has(path)) this.#tree.makeDirectory(path);
      else if (this.#tree.find(path).kind !== "directory") throw new StorageError("ENOTDIR");
    }
  }

  #has(path: string): boolean {
    try {
      this.#tree.find(path);
      return true;
    } catch (error) {
      if (error instanceof StorageError && error.code === "ENOENT") return false;
      throw error;
    }
  }

  #find(path: string, given: string): Node {
    try {
      return this.#tree.find(path);
    } catch (error) {
      throw asFileError(error, given);
    }
  }

  /** Resolves the links in the directory of a path; the entry itself may be a link. */
  #followAbove(given: string): string {
    const parts = given.split("/");
    const name = parts.pop() ?? "";
    const parent = this.#follow(parts.join("/"));
    return parent === "" ? name : `${parent}/${name}`;
  }

  /**
   * Resolves the links in a path; parts that do not exist stay unchanged.
   *
   * @throws WorkspacePathError if a link points outside the workspace.
   */
  #follow(given: string): string {
    let links = 0;
    const followed: { readonly name: string; readonly node: Node | undefined }[] = [];
    const coming = given.split("/").toReversed();
    for (let part = coming.pop(); part !== undefined; part = coming.pop()) {
      if (part === "" || part === ".") continue;
      if (part === "..") {
        if (followed.pop() === undefined) throw leavesWorkspace(given);
        continue;
      }
      const parent = followed.length === 0 ? this.#tree.root : followed.at(-1)?.node;
      const node = parent?.kind === "directory" ? parent.entries.get(part) : undefined;
      if (node?.kind !== "link") {
        followed.push({ name: part, node });
        continue;
      }
      links += 1;
      if (links > mostLinks) throw new InvalidInputError(`${quote(given)} has too many symbolic links`, { remedy });
      const { target } = node;
      if (target.startsWith("/")) {
        if (!`${target}/`.startsWith(`${workspacePath}/`)) throw leavesWorkspace(given);
        followed.length = 0;
        coming.push(...target.slice(workspacePath.length).split("/").toReversed());
      } else coming.push(...target.split("/").toReversed());
    }
    return followed.map(({ name }) => name).join("/");
  }
}

const remedy = "List the files with `files.list()`.";

function* entriesBelow(top: Directory, topPrefix: string, recursive: boolean): Generator<FileEntry, void, void> {
  const coming: [directory: Directory, prefix: string][] = [[top, topPrefix]];
  for (let each = coming.pop(); each; each = coming.pop()) {
    const [directory, prefix] = each;
    for (const [name, node] of directory.entries) {
      if (node.kind === "file") yield { path: prefix + name, type: "file", size: node.content.size };
      if (node.kind !== "directory") continue;
      yield { path: prefix + name, type: "directory", size: 0 };
      if (recursive) coming.push([node, `${prefix}${name}/`]);
    }
  }
}

function leavesWorkspace(given: string): WorkspacePathError {
  return new WorkspacePathError(`The path ${quote(given)} leads out of the workspace through a symbolic link`, {
    remedy: "Use a path that stays in the workspace, or remove the link.",
  });
}

function asFileError(error: unknown, given: string): unknown {
  if (!(error instanceof StorageError)) return error;
  return new FileNotFoundError(`There is no file ${quote(given)} in the workspace`, { cause: error, remedy });
}

function asInputError(error: unknown, given: string): unknown {
  if (!(error instanceof StorageError)) return error;
  if (error.code === "ENOSPC") {
    return new InvalidInputError(
      `There is no space for ${quote(given)}: the session's files have reached storageBytes`,
      {
        cause: error,
        remedy: "Remove files, or raise `storageBytes`.",
      },
    );
  }
  return new InvalidInputError(`${quote(given)} cannot be written (${error.code})`, {
    cause: error,
    remedy: "Choose a name of at most 255 bytes, in an existing directory, that is not itself a directory.",
  });
}

function quote(path: string): string {
  return JSON.stringify(path);
}
