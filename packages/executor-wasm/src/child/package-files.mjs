const directoryMode = 0o40_555;
const fileMode = 0o100_444;
const trailerBytes = 36;

/**
 * A read-only file system for Emscripten with the packages that were unpacked into one file. At the end of the file is a list of
 * its contents: for each name the position and size of the content, or the names in that directory. The list is followed by its
 * length, in four bytes, and its SHA-256.
 *
 * @param {any} FS - Emscripten's.
 * @param {Readonly<Record<string, number>>} errors - Emscripten's numbers of errors.
 * @param {number} size - of the file.
 * @param {(at: number, length: number) => Buffer} read
 */
export function packageFiles(FS, errors, size, read) {
  const end = size - trailerBytes;
  const length = read(end, 4).readUInt32BE();
  const list = JSON.parse(read(end - length, length).toString());
  const time = new Date();
  /** @type {(parent: any, name: string, found: any) => any} */
  const makeNode = (parent, name, found) => {
    const node = FS.createNode(parent, name, Array.isArray(found) ? fileMode : directoryMode, 0);
    return Object.assign(node, { found, node_ops: nodeOperations, stream_ops: streamOperations });
  };
  const sizeOf = (/** @type {any} */ node) => (Array.isArray(node.found) ? node.found[1] : 4096);
  const refuse = () => {
    throw new FS.ErrnoError(errors.EROFS);
  };
  const attributes = (/** @type {any} */ node) => ({
    dev: 2,
    ino: node.id,
    mode: node.mode,
    nlink: 1,
    uid: 0,
    gid: 0,
    rdev: 0,
    size: sizeOf(node),
    atime: time,
    mtime: time,
    ctime: time,
    blksize: 4096,
    blocks: Math.ceil(sizeOf(node) / 512),
  });

  const nodeOperations = {
    getattr: attributes,
    lookup(/** @type {any} */ parent, /** @type {string} */ name) {
      if (!Object.hasOwn(parent.found, name)) throw new FS.ErrnoError(errors.ENOENT);
      return makeNode(parent, name, parent.found[name]);
    },
    readdir: (/** @type {any} */ node) => [".", "..", ...Object.keys(node.found)],
    setattr: refuse,
    mknod: refuse,
    rename: refuse,
    unlink: refuse,
    rmdir: refuse,
    symlink: refuse,
  };
  const streamOperations = {
    open(/** @type {any} */ { flags }) {
      if ((flags & 3) !== 0) refuse();
    },
    /** @type {(stream: any, buffer: Uint8Array, offset: number, length: number, position: number) => number} */
    read({ node }, buffer, offset, wanted, position) {
      const [at, bytes] = node.found;
      const piece = read(at + position, Math.max(0, Math.min(wanted, bytes - position)));
      new Uint8Array(buffer.buffer, buffer.byteOffset + offset).set(piece);
      return piece.length;
    },
    write: refuse,
    llseek(/** @type {any} */ stream, /** @type {number} */ offset, /** @type {number} */ whence) {
      const position = offset + (whence === 1 ? stream.position : whence === 2 ? sizeOf(stream.node) : 0);
      if (position < 0) throw new FS.ErrnoError(errors.EINVAL);
      return position;
    },
  };
  return { mount: () => makeNode(null, "/", list) };
}
