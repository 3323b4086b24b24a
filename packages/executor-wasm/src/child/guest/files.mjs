/** The meanings of error codes, as Node words them. */
const meanings = {
  EACCES: "permission denied",
  EBADF: "bad file descriptor",
  EEXIST: "file already exists",
  EINVAL: "invalid argument",
  EISDIR: "illegal operation on a directory",
  ELOOP: "too many symbolic links encountered",
  EMFILE: "too many open files",
  ENAMETOOLONG: "name too long",
  ENOENT: "no such file or directory",
  ENOSPC: "no space left on device",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
  EXDEV: "cross-device link not permitted",
};
/** Bytes to read or write at once. */
const pieceBytes = 524_288;

/**
 * The module `fs`: its synchronous functions, and the asynchronous ones made from them.
 *
 * @param {{ ask: any, Buffer: any, path: any }} world
 */
export function makeFileSystem({ ask, Buffer, path }) {
  const input = { bytes: Buffer.alloc(0), at: 0 };
  const nameOf = (/** @type {any} */ file) => {
    const name =
      typeof file === "object" && file !== null && "pathname" in file ? decodeURIComponent(file.pathname) : file;
    const valid = typeof name === "string" || name instanceof Uint8Array;
    if (!valid) throw new TypeError('The "path" argument must be of type string.');
    return path.resolve("/workspace", Buffer.isBuffer(name) ? name.toString() : String(name));
  };
  /** @type {(call: string, file: string | undefined, fields: object, bytes?: Uint8Array) => { fields: any, bytes: Uint8Array }} */
  const perform = (call, file, fields, bytes) => {
    const answer = ask(fields, bytes);
    const code = answer.fields.error;
    if (code === undefined) return answer;
    const where = file === undefined ? "" : ` '${file}'`;
    const error = new Error(`${code}: ${Reflect.get(meanings, code) ?? "unknown error"}, ${call}${where}`);
    throw Object.assign(error, { code, syscall: call, ...(file === undefined ? {} : { path: file }) });
  };
  const encoded = (/** @type {any} */ bytes, /** @type {any} */ options) => {
    const encoding = typeof options === "string" ? options : options?.encoding;
    return encoding && encoding !== "buffer" ? bytes.toString(encoding) : bytes;
  };
  const bytesOf = (/** @type {any} */ data, /** @type {any} */ options) => {
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    return Buffer.from(String(data), (typeof options === "string" ? options : options?.encoding) ?? "utf8");
  };
  const statsOf = (/** @type {any} */ { id, mode, size, modifiedAt }) => {
    const is = (/** @type {number} */ kind) => () => (mode & 0o170_000) === kind;
    const time = new Date(modifiedAt);
    const times = {
      atime: time,
      mtime: time,
      ctime: time,
      birthtime: time,
      atimeMs: modifiedAt,
      mtimeMs: modifiedAt,
      ctimeMs: modifiedAt,
    };
    const never = () => false;
    const others = { isFIFO: never, isSocket: never, isBlockDevice: never, isCharacterDevice: never };
    const kinds = { isFile: is(0o100_000), isDirectory: is(0o40_000), isSymbolicLink: is(0o120_000) };
    return { ino: id, mode, size, uid: 0, gid: 0, nlink: 1, dev: 1, ...times, ...kinds, ...others };
  };
  /** @type {(call: string, file: any, links: boolean, options?: { throwIfNoEntry?: boolean }) => any} */
  const stat = (call, file, links, options) => {
    const name = nameOf(file);
    try {
      return statsOf(perform(call, name, { op: "stat", path: name, links }).fields);
    } catch (error) {
      if (options?.throwIfNoEntry === false && /** @type {any} */ (error).code === "ENOENT") return undefined;
      throw error;
    }
  };
  /** The position of the next read or write of each descriptor. @type {Map<number, { at: number, append: boolean }>} */
  const opened = new Map();

  /** @type {any} - Node has types for it. */
  const fs = {
    constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2 },
    openSync(/** @type {any} */ file, flags = "r") {
      const name = nameOf(file);
      const { fd } = perform("open", name, { op: "open", path: name, flags: String(flags) }).fields;
      opened.set(fd, { at: 0, append: String(flags).startsWith("a") });
      return fd;
    },
    closeSync(/** @type {number} */ fd) {
      opened.delete(fd);
      perform("close", undefined, { op: "close", fd });
    },
    fstatSync: (/** @type {number} */ fd) => statsOf(perform("fstat", undefined, { op: "stat", fd }).fields),
    ftruncateSync: (/** @type {number} */ fd, size = 0) =>
      void perform("ftruncate", undefined, { op: "change", fd, size }),
    fsyncSync: () => {},
    /** @type {(fd: number, buffer: Uint8Array, offset?: any, length?: number, position?: number | null) => number} */
    readSync(fd, buffer, offset = 0, length = buffer.byteLength - offset, position = null) {
      if (fd === 0) {
        const taken = input.bytes.subarray(input.at, input.at + length);
        new Uint8Array(buffer.buffer, buffer.byteOffset).set(taken, offset);
        input.at += taken.length;
        return taken.length;
      }
      const state = opened.get(fd) ?? { at: 0 };
      const wanted = Math.min(length, pieceBytes);
      const { bytes } = perform("read", undefined, { op: "read", fd, at: position ?? state.at, length: wanted });
      new Uint8Array(buffer.buffer, buffer.byteOffset).set(bytes, offset);
      if (position === null) state.at += bytes.length;
      return bytes.length;
    },
    /** @type {(fd: number, data: any, offset?: any, length?: any, position?: number | null) => number} */
    writeSync(fd, data, offset, length, position = null) {
      const text = typeof data === "string";
      const bytes = text
        ? Buffer.from(data)
        : bytesOf(data, undefined).subarray(offset ?? 0, (offset ?? 0) + (length ?? Infinity));
      if (fd === 1 || fd === 2) {
        ask({ op: "print", to: fd }, bytes);
        return bytes.length;
      }
      const state = opened.get(fd) ?? { at: 0, append: false };
      const given = text ? offset : position;
      for (let done = 0; done < bytes.length; done += pieceBytes) {
        const at = state.append
          ? fs.fstatSync(fd).size
          : (given ?? state.at) + (given === null || given === undefined ? 0 : done);
        const piece = bytes.subarray(done, done + pieceBytes);
        perform("write", undefined, { op: "write", fd, at }, piece);
        if (given === null || given === undefined) state.at = at + piece.length;
      }
      return bytes.length;
    },
    readFileSync(/** @type {any} */ file, /** @type {any} */ options) {
      if (file === 0 || file === "/dev/stdin") {
        const rest = input.bytes.subarray(input.at);
        input.at = input.bytes.length;
        return encoded(rest, options);
      }
      const fd = typeof file === "number" ? file : fs.openSync(file, "r");
      try {
        const pieces = [];
        for (let at = 0; ;) {
          const { bytes } = perform("read", undefined, { op: "read", fd, at, length: pieceBytes });
          pieces.push(bytes);
          at += bytes.length;
          if (bytes.length < pieceBytes) return encoded(Buffer.concat(pieces), options);
        }
      } finally {
        if (fd !== file) fs.closeSync(fd);
      }
    },
    writeFileSync(/** @type {any} */ file, /** @type {any} */ data, /** @type {any} */ options) {
      const fd = typeof file === "number" ? file : fs.openSync(file, options?.flag ?? "w");
      try {
        fs.writeSync(fd, bytesOf(data, options));
      } finally {
        if (fd !== file) fs.closeSync(fd);
      }
    },
    appendFileSync: (/** @type {any} */ file, /** @type {any} */ data, /** @type {any} */ options) =>
      fs.writeFileSync(file, data, { encoding: typeof options === "string" ? options : options?.encoding, flag: "a" }),
    copyFileSync: (/** @type {any} */ from, /** @type {any} */ to) => fs.writeFileSync(to, fs.readFileSync(from)),
    existsSync: (/** @type {any} */ file) => fs.statSync(file, { throwIfNoEntry: false }) !== undefined,
    accessSync: (/** @type {any} */ file) => void stat("access", file, false),
    statSync: (/** @type {any} */ file, /** @type {any} */ options) => stat("stat", file, false, options),
    lstatSync: (/** @type {any} */ file, /** @type {any} */ options) => stat("lstat", file, true, options),
    readdirSync(/** @type {any} */ directory, /** @type {any} */ options) {
      const name = nameOf(directory);
      /** @type {string[]} */
      const names = [];
      for (let more = true; more;) {
        const { fields } = perform("scandir", name, { op: "list", path: name, from: names.length });
        names.push(...fields.names);
        more = fields.more === true;
      }
      names.sort();
      const entries = names.map((each) => ({ name: each, parentPath: name, path: name }));
      const typed = () => entries.map((each) => Object.assign(fs.lstatSync(path.join(name, each.name)), each));
      if (options?.recursive !== true) return options?.withFileTypes === true ? typed() : names;
      return typed().flatMap((each) => {
        const below = each.isDirectory() ? fs.readdirSync(path.join(name, each.name), options) : [];
        const inner =
          options.withFileTypes === true ? below : below.map((/** @type {string} */ one) => path.join(each.name, one));
        return [options.withFileTypes === true ? each : each.name, ...inner];
      });
    },
    mkdirSync(/** @type {any} */ directory, /** @type {any} */ options) {
      const name = nameOf(directory);
      if (options?.recursive !== true) return void perform("mkdir", name, { op: "mkdir", path: name });
      if (fs.statSync(name, { throwIfNoEntry: false })?.isDirectory() === true) return undefined;
      if (name !== "/") fs.mkdirSync(path.dirname(name), options);
      return void perform("mkdir", name, { op: "mkdir", path: name });
    },
    mkdtempSync(/** @type {string} */ prefix) {
      const name = `${nameOf(prefix)}${prefix.endsWith("/") ? "/" : ""}${Math.random().toString(36).slice(2, 8)}`;
      fs.mkdirSync(name);
      return name;
    },
    rmdirSync: (/** @type {any} */ directory) =>
      void perform("rmdir", nameOf(directory), { op: "rmdir", path: nameOf(directory) }),
    unlinkSync: (/** @type {any} */ file) => void perform("unlink", nameOf(file), { op: "unlink", path: nameOf(file) }),
    rmSync(/** @type {any} */ file, /** @type {any} */ options = {}) {
      const name = nameOf(file);
      const found = fs.lstatSync(name, { throwIfNoEntry: options.force !== true });
      if (!found) return;
      if (!found.isDirectory() || options.recursive !== true) {
        perform("rm", name, { op: "unlink", path: name });
        return;
      }
      for (const each of fs.readdirSync(name)) fs.rmSync(path.join(name, each), options);
      fs.rmdirSync(name);
    },
    renameSync(/** @type {any} */ from, /** @type {any} */ to) {
      perform("rename", nameOf(from), { op: "rename", path: nameOf(from), to: nameOf(to) });
    },
    symlinkSync: (/** @type {any} */ target, /** @type {any} */ link) =>
      void perform("symlink", nameOf(link), { op: "link", path: nameOf(link), target: String(target) }),
    readlinkSync: (/** @type {any} */ link) =>
      perform("readlink", nameOf(link), { op: "target", path: nameOf(link) }).fields.target,
    realpathSync: (/** @type {any} */ file) =>
      perform("realpath", nameOf(file), { op: "real", path: nameOf(file) }).fields.path,
    chmodSync: (/** @type {any} */ file, /** @type {number} */ mode) =>
      void perform("chmod", nameOf(file), { op: "change", path: nameOf(file), mode: Number(mode) & 0o777 }),
    truncateSync: (/** @type {any} */ file, size = 0) =>
      void perform("truncate", nameOf(file), { op: "change", path: nameOf(file), size }),
    utimesSync: (/** @type {any} */ file, /** @type {any} */ _accessed, /** @type {any} */ modified) =>
      void perform("utime", nameOf(file), {
        op: "change",
        path: nameOf(file),
        modifiedAt: modified instanceof Date ? Number(modified) : modified * 1000,
      }),
  };
  const setInput = (/** @type {any} */ bytes) => Object.assign(input, { bytes, at: 0 });
  return { fs: Object.assign(fs, asynchronous(fs)), setInput };
}

/**
 * The other forms of the functions: with a callback, and with a promise.
 *
 * @param {Readonly<Record<string, any>>} fs
 */
function asynchronous(fs) {
  /** @type {Record<string, any>} */
  const promises = { constants: fs.constants };
  /** @type {Record<string, any>} */
  const callbacks = {};
  for (const [name, call] of Object.entries(fs)) {
    if (!name.endsWith("Sync")) continue;
    const short = name.slice(0, -"Sync".length);
    promises[short] = async (/** @type {any[]} */ ...values) => call(...values);
    callbacks[short] = (/** @type {any[]} */ ...values) => {
      const done = values.pop();
      const succeed = (/** @type {any} */ value) => done(null, value);
      promises[short](...values).then(succeed, done);
    };
  }
  return { ...callbacks, promises };
}
