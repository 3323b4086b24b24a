import { constants } from "node:fs";
import { createRequire, syncBuiltinESMExports } from "node:module";

// Removes everything with which code could do harm if it escaped from Python into this process's JavaScript. The permission
// model protects the files; what it allows on some versions of Node (sockets, signals, compiling text, `process.binding`) is
// removed here: most of it before the interpreter is loaded, the rest afterwards.

/** Node modules that the interpreter needs while it is loaded. */
const neededModules = ["fs", "fs/promises", "path", "url", "crypto", "events", "tty"];
/** Modules that open connections, start programs or threads, compile text, or load others. No others can be imported later. */
const harmfulModules =
  "net tls dns dns/promises dgram http https child_process cluster worker_threads inspector vm v8 module".split(" ");
/** Globals that reach out of the process, or start threads. */
const harmfulGlobals =
  /^(?:fetch|WebSocket|XMLHttpRequest|EventSource|CloseEvent|MessageEvent|Request|Response|Headers|FormData|BroadcastChannel|MessageChannel|MessagePort|Worker|navigator|localStorage|sessionStorage|Storage|module|exports)$/;
/** Properties of `process` that Node itself and the interpreter keep reading. */
const keptOfProcess = [
  "stdin",
  "stdout",
  "stderr",
  "version",
  "versions",
  "release",
  "platform",
  "arch",
  "type",
  "exitCode",
  "nextTick",
  "emitWarning",
];
const keptOfCrypto = ["randomFillSync", "getRandomValues", "webcrypto"];

const require = createRequire(import.meta.url);
const synchronise = syncBuiltinESMExports;
/** All modules are loaded before any is emptied: they import from each other what is about to be removed. */
const modules = new Map([...neededModules, ...harmfulModules].map((name) => [name, loaded(name)]));

/** Called before the interpreter is loaded. */
export function harden() {
  for (const name of harmfulModules) empty(name);
  // `Module.prototype._compile` makes code from text, whatever V8 was told.
  const { prototype } = /** @type {Function} */ (modules.get("module"));
  for (const key of Reflect.ownKeys(prototype)) Reflect.deleteProperty(prototype, key);
  // The interpreter creates a `require` to load what it needs.
  const load = (/** @type {string} */ name) => modules.get(name.replace("node:", "")) ?? {};
  Object.assign(modules.get("module") ?? {}, { createRequire: () => load });
  synchronise();
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (harmfulGlobals.test(name)) Reflect.deleteProperty(globalThis, name);
  }
  // The interpreter asks it for the numbers of file flags.
  Reflect.defineProperty(process, "binding", { value: () => ({ fs: constants }), configurable: true });
  // The interpreter's error contains what it would print when it crashes; Node has no streams left to print it to.
  for (const name of Object.keys(console)) Reflect.set(console, name, () => {});
  // It reads their descriptors; Node would create streams, whose modules are missing by now.
  for (const [fd, name] of ["stdin", "stdout", "stderr"].entries()) {
    Object.defineProperty(process, name, { value: { fd, isTTY: false }, configurable: true });
  }
  Object.defineProperty(Error, "prepareStackTrace", { value: undefined, writable: false, configurable: false });
  // If `require` exists, the interpreter does not create one that could start programs.
  Object.defineProperty(globalThis, "require", { value: () => ({}), configurable: true });
}

/**
 * Called when the interpreter is loaded and needs only random numbers from Node. From then on, every import fails, except
 * of modules that have been imported before, which are empty.
 */
export function hardenAgain() {
  for (const name of neededModules) empty(name, name === "crypto" ? keptOfCrypto : []);
  empty("module");
  synchronise();
  modules.clear();
  closeImports();
  Reflect.deleteProperty(globalThis, "require");
  for (const key of Object.getOwnPropertyNames(process)) {
    if (!keptOfProcess.includes(key)) Reflect.deleteProperty(process, key);
  }
  // Node reads settings from the first for error messages; Python calls the second.
  Object.defineProperty(process, "env", { value: Object.freeze(Object.create(null)) });
  Object.defineProperty(process, "getuid", { value: () => 1000 });
}

/**
 * Node resolves whatever is imported (its own modules, files, `data:`) with the class `URL`, whose methods anybody can replace,
 * but not back again. `realm.test.ts` tries every module of Node.
 */
function closeImports() {
  const closed = () => {
    throw new Error("Nothing can be imported any more.");
  };
  for (const key of Reflect.ownKeys(URL.prototype)) {
    Object.defineProperty(URL.prototype, key, { get: closed, set: closed, configurable: false });
  }
  Object.freeze(URL.prototype);
}

/**
 * @param {string} name
 * @returns {object}
 */
function loaded(name) {
  /** @type {unknown} */
  const exported = require(`node:${name}`);
  if ((typeof exported === "object" || typeof exported === "function") && exported !== null) return exported;
  throw new Error(`There is no module ${name}.`);
}

/**
 * Removes a module's exports for every importer. Node's own modules keep what they have imported from it.
 *
 * @param {string} name
 * @param {readonly string[]} [kept]
 */
function empty(name, kept = []) {
  const exported = modules.get(name) ?? {};
  for (const key of Reflect.ownKeys(exported)) {
    if (typeof key === "symbol" || !kept.includes(key)) Reflect.deleteProperty(exported, key);
  }
}
