import { constants } from "node:fs";
import { createRequire, syncBuiltinESMExports } from "node:module";

// Takes away what code could do harm with if it got from Python to this process's JavaScript. The permission model keeps the files;
// what it lets through on some version of Node (sockets, signals, compiling text, `process.binding`) is removed here, before the
// interpreter is loaded, and the rest once it is.

/** What the interpreter needs of Node while it is loaded. */
const neededModules = ["fs", "fs/promises", "path", "url", "crypto", "events", "tty"];
/** Modules that open connections, start programs or threads, compile text, or load others. What is not loaded now never is. */
const harmfulModules =
  "net tls dns dns/promises dgram http https child_process cluster worker_threads inspector vm v8 module".split(" ");
/** Globals that reach out of the process, or start threads. */
const harmfulGlobals =
  /^(?:fetch|WebSocket|XMLHttpRequest|EventSource|CloseEvent|MessageEvent|Request|Response|Headers|FormData|BroadcastChannel|MessageChannel|MessagePort|Worker|navigator|localStorage|sessionStorage|Storage|module|exports)$/;
/** What Node itself and the interpreter go on reading of the process. */
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
/** All are loaded before any is emptied: they take from each other what is about to go. */
const modules = new Map([...neededModules, ...harmfulModules].map((name) => [name, loaded(name)]));

/** Called before the interpreter is loaded. */
export function harden() {
  for (const name of harmfulModules) empty(name);
  // The interpreter makes one for itself, to load what it needs with it.
  const load = (/** @type {string} */ name) => modules.get(name.replace("node:", "")) ?? {};
  Object.assign(modules.get("module") ?? {}, { createRequire: () => load });
  synchronise();
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (harmfulGlobals.test(name)) Reflect.deleteProperty(globalThis, name);
  }
  // The interpreter asks it for the numbers of file flags.
  Reflect.defineProperty(process, "binding", { value: () => ({ fs: constants }), configurable: true });
  // It looks at their descriptors; Node would make streams, for which modules are missing.
  for (const [fd, name] of ["stdin", "stdout", "stderr"].entries()) {
    Object.defineProperty(process, name, { value: { fd, isTTY: false }, configurable: true });
  }
  Object.defineProperty(Error, "prepareStackTrace", { value: undefined, writable: false, configurable: false });
  // Where there is one already, the interpreter does not make one that starts programs.
  Object.defineProperty(globalThis, "require", { value: () => ({}), configurable: true });
}

/** Called when the interpreter is loaded, and needs nothing more of Node than random numbers. */
export function hardenAgain() {
  for (const name of neededModules) empty(name, name === "crypto" ? keptOfCrypto : []);
  empty("module");
  synchronise();
  modules.clear();
  Reflect.deleteProperty(globalThis, "require");
  for (const key of Object.getOwnPropertyNames(process)) {
    if (!keptOfProcess.includes(key)) Reflect.deleteProperty(process, key);
  }
  // What the interpreter would print when it breaks down is in its error; Node has no streams left to print it to.
  for (const name of Object.keys(console)) Reflect.set(console, name, () => {});
  // Node looks for settings in the one, for messages of errors; Python asks for the other.
  Object.defineProperty(process, "env", { value: Object.freeze(Object.create(null)) });
  Object.defineProperty(process, "getuid", { value: () => 1000 });
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
 * Removes what a module exports, for every importer. Node's own parts keep what they took from it.
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
