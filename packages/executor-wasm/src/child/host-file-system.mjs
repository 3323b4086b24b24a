import { ask } from "./wire.mjs";

/** Maximum number of bytes to read or write at once; the host accepts no more. */
export const pieceBytes = 524_288;

/**
 * A file system for Emscripten whose files the host keeps: each operation is one request to it. Emscripten caches the
 * nodes that it has seen; they are forgotten when the host reports that it has changed files itself.
 *
 * @param {any} FS - Emscripten's.
 * @param {Readonly<Record<string, number>>} errors - Emscripten's numbers of errors.
 */
export function hostFileSystem(FS, errors) {
  /** @type {(fields: object, bytes?: Uint8Array) => { fields: any, bytes: Buffer }} */
  const call = (fields, bytes) => {
    const answer = ask(fields, bytes);
    if (answer.fields.changed === true) forgetNodes(FS, type);
    if (answer.fields.error !== undefined) throw new FS.ErrnoError(errors[answer.fields.error]);
    return answer;
  };
  /** @type {(node: any, name?: string) => string} */
  const pathOf = (node, name) => {
    const names = name === undefined ? [] : [name];
    for (let each = node; each.parent !== each; each = each.parent) names.unshift(each.name);
    return names.join("/");
  };
  const attributes = (/** @type {any} */ { mode, size, modifiedAt, id }) => ({
    dev: 1,
    ino: id,
    mode,
    nlink: 1,
    uid: 0,
    gid: 0,
    rdev: 0,
    size,
    atime: new Date(modifiedAt),
    mtime: new Date(modifiedAt),
    ctime: new Date(modifiedAt),
    blksize: 4096,
    blocks: Math.ceil(size / 512),
  });
  const changes = (/** @type {any} */ { mode, size, mtime }) => ({
    ...(mode === undefined ? {} : { mode: mode & 0o777 }),
    ...(size === undefined ? {} : { size }),
    ...(mtime === undefined ? {} : { modifiedAt: Number(mtime) }),
  });
  /** @type {(parent: any, name: string, mode: number) => any} */
  const makeNode = (parent, name, mode) => {
    const node = FS.createNode(parent, name, mode, 0);
    node.node_ops = nodeOperations;
    node.stream_ops = streamOperations;
    return node;
  };

  const nodeOperations = {
    getattr: (/** @type {any} */ node) => attributes(call({ op: "stat", path: pathOf(node) }).fields),
    setattr(/** @type {any} */ node, /** @type {any} */ attr) {
      call({ op: "change", path: pathOf(node), ...changes(attr) });
      if (attr.mode !== undefined) node.mode = attr.mode;
    },
    lookup(/** @type {any} */ parent, /** @type {string} */ name) {
      return makeNode(parent, name, call({ op: "stat", path: pathOf(parent, name) }).fields.mode);
    },
    mknod(/** @type {any} */ parent, /** @type {string} */ name, /** @type {number} */ mode) {
      if (!FS.isDir(mode) && !FS.isFile(mode)) throw new FS.ErrnoError(errors.EPERM);
      const kind = FS.isDir(mode) ? "directory" : "file";
      call({ op: "make", path: pathOf(parent, name), kind, mode: mode & 0o777 });
      return makeNode(parent, name, mode);
    },
    rename(/** @type {any} */ node, /** @type {any} */ directory, /** @type {string} */ name) {
      call({ op: "rename", path: pathOf(node), to: pathOf(directory, name) });
      // Whatever had the new name is gone.
      forgetNodes(FS, type);
      node.name = name;
    },
    unlink: (/** @type {any} */ parent, /** @type {string} */ name) =>
      void call({ op: "unlink", path: pathOf(parent, name) }),
    rmdir: (/** @type {any} */ parent, /** @type {string} */ name) =>
      void call({ op: "rmdir", path: pathOf(parent, name) }),
    readdir(/** @type {any} */ node) {
      /** @type {string[]} */
      const names = [];
      for (let more = true; more;) {
        const { fields } = call({ op: "list", path: pathOf(node), from: names.length });
        names.push(...fields.names);
        more = fields.more === true;
      }
      return [".", "..", ...names];
    },
    symlink: (/** @type {any} */ parent, /** @type {string} */ name, /** @type {string} */ target) =>
      void call({ op: "link", path: pathOf(parent, name), target }),
    readlink: (/** @type {any} */ node) => call({ op: "target", path: pathOf(node) }).fields.target,
  };

  const streamOperations = {
    getattr: (/** @type {any} */ { shared }) => attributes(call({ op: "stat", handle: shared.handle }).fields),
    setattr: (/** @type {any} */ { shared }, /** @type {any} */ attr) =>
      void call({ op: "change", handle: shared.handle, ...changes(attr) }),
    open(/** @type {any} */ { node, shared }) {
      // Emscripten also opens directories, to list them.
      if (!FS.isFile(node.mode)) return;
      shared.handle = call({ op: "open", path: pathOf(node) }).fields.handle;
      shared.users = 1;
    },
    dup(/** @type {any} */ { shared }) {
      shared.users += 1;
    },
    close(/** @type {any} */ { shared }) {
      if (shared.handle === undefined) return;
      shared.users -= 1;
      if (shared.users === 0) call({ op: "close", handle: shared.handle });
    },
    /** @type {(stream: any, buffer: Uint8Array, offset: number, length: number, position: number) => number} */
    read({ shared }, buffer, offset, length, position) {
      let done = 0;
      while (done < length) {
        const wanted = Math.min(length - done, pieceBytes);
        const { bytes } = call({ op: "read", handle: shared.handle, at: position + done, length: wanted });
        new Uint8Array(buffer.buffer, buffer.byteOffset + offset + done, bytes.length).set(bytes);
        done += bytes.length;
        if (bytes.length < wanted) break;
      }
      return done;
    },
    /** @type {(stream: any, buffer: Uint8Array, offset: number, length: number, position: number) => number} */
    write({ shared }, buffer, offset, length, position) {
      for (let done = 0; done < length; done += pieceBytes) {
        const size = Math.min(length - done, pieceBytes);
        const piece = new Uint8Array(buffer.buffer, buffer.byteOffset + offset + done, size);
        call({ op: "write", handle: shared.handle, at: position + done }, piece);
      }
      return length;
    },
    llseek(/** @type {any} */ stream, /** @type {number} */ offset, /** @type {number} */ whence) {
      let position = offset;
      if (whence === 1) position += stream.position;
      else if (whence === 2) position += call({ op: "stat", handle: stream.shared.handle }).fields.size;
      if (position < 0) throw new FS.ErrnoError(errors.EINVAL);
      return position;
    },
  };

  const type = { mount: () => makeNode(null, "/", 0o40_755) };
  return type;
}

/**
 * Makes Emscripten look up every file again.
 *
 * @param {any} FS - Emscripten's.
 * @param {object} type
 */
export function forgetNodes(FS, type) {
  for (const [hash, first] of FS.nameTable.entries()) {
    for (let node = first; node; node = node.name_next) {
      if (node.mount?.type === type && FS.nameTable[hash]) FS.hashRemoveNode(node);
    }
  }
}
