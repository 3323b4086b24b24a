import { firstLine, makeConsole, makeFormat, makeInspect } from "./console.mjs";
import { makeFileSystem } from "./files.mjs";
import { makeConnections, makeModuleRequire } from "./modules.mjs";
import { makeProcess } from "./process.mjs";
import { makeAtomics, makeTimers } from "./timers.mjs";

// What JavaScript blocks have besides the language itself: console, timers, and the Node modules that need no operating system.
// It runs in QuickJS, beside the blocks, and is trusted as little as they are: everything it does is a request to the process
// around it. Its parts are joined into one function, whose parameters are `send`, `received` and `libraries`.

/**
 * @param {(fields: string, bytes?: ArrayBuffer) => string} send - asks the surrounding process; returns the answer's fields.
 * @param {() => ArrayBuffer} received - the answer's bytes.
 * @param {Readonly<Record<string, string>>} libraries - sources of CommonJS modules, by name.
 */
export function makeGuest(send, received, libraries) {
  /** @type {any} */
  const scope = globalThis;
  const { parse, stringify } = JSON;
  /** @type {(fields: object, bytes?: Uint8Array) => { fields: any, bytes: Uint8Array }} */
  const ask = (fields, bytes) => {
    const sent = bytes?.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const answer = parse(send(stringify(fields), /** @type {any} */ (sent)));
    return { fields: answer, bytes: answer.bytes === true ? new Uint8Array(received()) : new Uint8Array(0) };
  };
  const library = requireOf(libraries);
  const { Buffer } = library("buffer");
  convertTextFast(Buffer, scope);
  Error.prepareStackTrace = stackOf;
  const EventEmitter = library("events");
  const path = library("path-browserify");
  path.posix = path;
  const world = { ask, Buffer, EventEmitter, path };
  const inspect = makeInspect(library("object-inspect"));
  const format = makeFormat(inspect);
  const timers = makeTimers();
  const { fs, setInput } = makeFileSystem(world);
  const { process, begin } = makeProcess(world);
  const net = makeConnections(world);
  const printed =
    (/** @type {1 | 2} */ to) =>
    (/** @type {unknown[]} */ ...values) =>
      void ask({ op: "print", to }, Buffer.from(`${format(...values)}\n`));
  const modules = {
    fs,
    "fs/promises": fs.promises,
    path,
    "path/posix": path,
    buffer: { Buffer },
    events: Object.assign(EventEmitter, { EventEmitter }),
    process,
    util: { inspect, format, promisify, TextEncoder: scope.TextEncoder, TextDecoder: scope.TextDecoder },
    url: makeUrl(scope),
    os: { EOL: "\n", tmpdir: () => "/tmp", homedir: () => "/home", platform: () => "wasi", cpus: () => [{}] },
    crypto: makeCrypto(scope.crypto, Buffer),
    net: net.module,
    timers: timers.globals,
    "timers/promises": {
      setTimeout: timers.wait,
      setImmediate: (/** @type {unknown} */ value) => timers.wait(0, value),
    },
    child_process: noPrograms(),
    module: {
      builtinModules: /** @type {string[]} */ ([]),
      createRequire: (/** @type {any} */ from) => requireFrom(String(from)),
    },
    perf_hooks: { performance: scope.performance },
  };
  modules.module.builtinModules.push(...Object.keys(modules));
  const requireFrom = makeModuleRequire(world, modules);
  const globals = {
    console: makeConsole(printed, inspect),
    process,
    Buffer,
    global: scope,
    ...timers.globals,
    Atomics: makeAtomics(ask),
    require: requireFrom("/workspace/block"),
    crypto: modules.crypto.webcrypto,
  };
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(scope, name, { value, writable: true, configurable: true, enumerable: false });
  }
  Object.defineProperty(scope, Symbol.for("fenced.modules"), { value: { ...modules, requireFrom } });
  return {
    names: modules.module.builtinModules.join(" "),
    begin(/** @type {string} */ file, /** @type {string} */ env, /** @type {boolean} */ hasInput) {
      const bytes = hasInput ? Buffer.from(ask({ op: "input" }).bytes) : Buffer.alloc(0);
      setInput(bytes);
      begin(file, parse(env), bytes);
      const module = { exports: {}, filename: file };
      scope.require.main = module;
      Object.assign(scope, { module, exports: module.exports });
    },
    /** Runs what is due. Returns the time until something is due again; -1: never; -2: when data arrives on a connection. */
    turn() {
      const left = timers.run();
      return left === -1 && net.waits() ? -2 : left;
    },
    waits: () => net.waits(),
    deliver: (/** @type {number} */ connection, /** @type {boolean} */ closed, /** @type {any} */ bytes) =>
      net.deliver(connection, closed, bytes),
    exitCode: () => Number(process.exitCode ?? 0) & 0xff,
    /** Whatever a block left behind must not run in the next one. */
    end() {
      timers.clear();
      net.clear();
    },
    describe: (/** @type {unknown} */ error) => `Uncaught ${inspect(error)}`,
    exportsOf: (/** @type {string} */ file) => stringify(Object.keys(requireFrom(file)(file) ?? {})),
  };
}

/**
 * Makes the engine convert UTF-8, which the library would do character by character.
 *
 * @param {any} Buffer
 * @param {any} scope
 */
function convertTextFast(Buffer, { TextEncoder, TextDecoder }) {
  const isUtf8 = (/** @type {unknown} */ encoding) =>
    encoding === undefined || encoding === "utf8" || encoding === "utf-8";
  const { from } = Buffer;
  const { toString } = Buffer.prototype;
  Buffer.from = (/** @type {any} */ value, /** @type {any} */ encoding, /** @type {any} */ length) => {
    if (typeof value !== "string" || !isUtf8(encoding)) return from(value, encoding, length);
    return Object.setPrototypeOf(new TextEncoder().encode(value), Buffer.prototype);
  };
  /** @this {any} */
  Buffer.prototype.toString = function text(/** @type {any} */ encoding, start = 0, end = this.length) {
    if (!isUtf8(encoding)) return toString.call(this, encoding, start, end);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.subarray(start, end));
  };
}

/** A stack as Node formats it: the error first. @type {(error: any, sites: readonly any[]) => string} */
function stackOf(error, sites) {
  const lines = sites.map((site) => {
    const place = `${site.getFileName() ?? "native"}:${site.getLineNumber() ?? ""}:${site.getColumnNumber() ?? ""}`;
    return `\n    at ${site.getFunctionName() ?? "<anonymous>"} (${place})`;
  });
  return `${firstLine(error)}${lines.join("")}`;
}

/** @param {Readonly<Record<string, string>>} libraries */
function requireOf(libraries) {
  /** @type {Map<string, any>} */
  const loaded = new Map();
  return function load(/** @type {string} */ name) {
    if (!loaded.has(name)) {
      const module = { exports: /** @type {any} */ ({}) };
      loaded.set(name, module);
      // This is QuickJS, where code created from text can reach nothing that other code cannot.
      new Function("module", "exports", "require", libraries[name] ?? "")(module, module.exports, load);
    }
    return loaded.get(name).exports;
  };
}

/** The module `child_process`, which can start nothing here. */
function noPrograms() {
  const refuse = () => {
    const error = new Error("Programs cannot be started: this is JavaScript in WebAssembly.");
    throw Object.assign(error, { code: "ENOTSUP" });
  };
  const names = ["spawn", "spawnSync", "exec", "execSync", "execFile", "execFileSync", "fork"];
  return Object.fromEntries(names.map((name) => [name, refuse]));
}

/** @param {(...values: any[]) => any} call */
function promisify(call) {
  return (/** @type {any[]} */ ...values) =>
    new Promise((resolve, reject) => {
      call(...values, (/** @type {unknown} */ error, /** @type {unknown} */ value) =>
        error ? reject(error) : resolve(value),
      );
    });
}

/** @param {any} scope */
function makeUrl({ URL, URLSearchParams }) {
  return {
    URL,
    URLSearchParams,
    pathToFileURL(/** @type {string} */ file) {
      const href = `file://${encodeURI(file).replaceAll("?", "%3F").replaceAll("#", "%23")}`;
      return { href, pathname: href.slice("file://".length), protocol: "file:", toString: () => href };
    },
    fileURLToPath: (/** @type {any} */ file) => decodeURIComponent(String(file.href ?? file).replace(/^file:\/\//, "")),
  };
}

/**
 * @param {any} webcrypto
 * @param {any} Buffer
 */
function makeCrypto(webcrypto, Buffer) {
  const randomBytes = (/** @type {number} */ size) => Buffer.from(webcrypto.getRandomValues(new Uint8Array(size)));
  const randomUUID = () => {
    const bytes = randomBytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  };
  webcrypto.randomUUID ??= randomUUID;
  const getRandomValues = (/** @type {any} */ array) => webcrypto.getRandomValues(array);
  return { webcrypto, subtle: webcrypto.subtle, randomBytes, randomUUID, getRandomValues };
}
