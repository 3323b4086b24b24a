/**
 * `require` for blocks and CommonJS modules. The surrounding process resolves names.
 *
 * @param {{ ask: any, path: any, Buffer: any }} world
 * @param {Readonly<Record<string, any>>} modules - Node's own modules.
 */
export function makeModuleRequire({ ask, path, Buffer }, modules) {
  /** By path and version. @type {Map<string, { exports: any }>} */
  const loaded = new Map();
  const requireFrom = (/** @type {string} */ from) => {
    const require = (/** @type {string} */ name) => {
      const { fields } = ask({ op: "resolve", from, name: String(name) });
      if (fields.message !== undefined) throw Object.assign(new Error(fields.message), { code: "MODULE_NOT_FOUND" });
      if (fields.builtin !== undefined) return modules[fields.builtin];
      return load(fields.path, fields.version);
    };
    return Object.assign(require, {
      resolve: (/** @type {string} */ name) => ask({ op: "resolve", from, name }).fields.path ?? name,
      cache: {},
    });
  };
  const load = (/** @type {string} */ file, /** @type {string} */ version) => {
    const key = `${file}?${version}`;
    const present = loaded.get(key);
    if (present) return present.exports;
    const { fields, bytes } = ask({ op: "source", path: file });
    if (fields.message !== undefined) throw new SyntaxError(fields.message);
    const text = Buffer.from(bytes).toString();
    const module = { exports: /** @type {any} */ ({}), filename: file };
    loaded.set(key, module);
    if (file.endsWith(".json")) module.exports = JSON.parse(text);
    else {
      try {
        const wrapped = new Function("module", "exports", "require", "__filename", "__dirname", text);
        wrapped(module, module.exports, requireFrom(file), file, path.dirname(file));
      } catch (error) {
        loaded.delete(key);
        throw error;
      }
    }
    return module.exports;
  };
  return requireFrom;
}

/**
 * The module `net`, which can connect only to host functions.
 *
 * @param {{ ask: any, Buffer: any, EventEmitter: any }} world
 */
export function makeConnections({ ask, Buffer, EventEmitter }) {
  /** @type {Map<number, any>} */
  const open = new Map();
  const connect = (/** @type {any[]} */ ...place) => {
    const socket = new EventEmitter();
    const { fields } = ask({ op: "dial", address: String(place[0]) });
    const end = () => {
      if (!open.delete(fields.connection)) return;
      ask({ op: "hang up", connection: fields.connection });
      queueMicrotask(() => socket.emit("close"));
    };
    const hold = (/** @type {boolean} */ held) => {
      socket.held = held;
      return socket;
    };
    Object.assign(socket, {
      held: true,
      write(/** @type {any} */ data) {
        if (!open.has(fields.connection)) return false;
        ask({ op: "send", connection: fields.connection }, typeof data === "string" ? Buffer.from(data) : data);
        return true;
      },
      end,
      destroy: end,
      ref: () => hold(true),
      unref: () => hold(false),
    });
    if (fields.connection === undefined) {
      const error = new Error("connect ENETUNREACH: there is no network here");
      queueMicrotask(() => socket.emit("error", Object.assign(error, { code: "ENETUNREACH" })));
    } else open.set(fields.connection, socket);
    return socket;
  };
  const createServer = () => {
    throw Object.assign(new Error("There is no network here."), { code: "ENOTSUP" });
  };
  return {
    module: { connect, createConnection: connect, createServer },
    /** Whether an open connection keeps the program running. */
    waits: () => [...open.values()].some(({ held }) => held),
    /** Delivers received data, or the end of the connection if `closed`. */
    deliver(/** @type {number} */ connection, /** @type {boolean} */ closed, /** @type {any} */ bytes) {
      const socket = open.get(connection);
      if (!closed) socket?.emit("data", Buffer.from(bytes));
      else socket?.destroy();
    },
    clear: () => open.clear(),
  };
}
