import disk from "node:fs";
import { scriptOf, TextError } from "../../../executor-kit/src/languages/javascript/scripts.mjs";
import { typeStripper } from "../../../executor-kit/src/languages/javascript/typescript.mjs";
import { harden, hardenAgain } from "./harden.mjs";
import { limitMemory } from "./limit-memory.mjs";
import { moduleNames } from "./module-names.mjs";
import { askAboutFile } from "./paths.mjs";
import { ask, frameType, packed, receive, send, sendAll, unpacked } from "./wire.mjs";

/**
 * Runs blocks of JavaScript and TypeScript in QuickJS, one after another, as the host sends them. The host has started this
 * process like Python's: with an empty environment, access to no file but the interpreter's own, and no way to create code
 * from text.
 *
 * @typedef {object} JavaScriptPlan
 * @property {number} memoryBytes
 * @property {string} guest - the program that runs in QuickJS before the blocks.
 * @property {Readonly<Record<"engine" | "wasm" | "parser" | "typescript" | "extensions", string>>} files
 * @property {Readonly<Record<string, string>>} libraries - files that the guest uses, by name.
 */

/** The engine's own stack. It must overflow before V8's, whose size the host has set. */
const stackBytes = 163_840;
/** The exit code of a program that waits for something that never happens, as in Node. */
const unsettled = 13;
const exit = process.exit.bind(process);
/** @type {JavaScriptPlan} */
const plan = JSON.parse(process.argv[1] ?? "");
const { QuickJS, EvalFlags, JSException } = await import(`file://${plan.files.engine}`);
const parser = await import(`file://${plan.files.parser}`);
const javaScriptOf = typeStripper(disk.readFileSync(plan.files.typescript, "utf8"));
const engine = disk.readFileSync(plan.files.wasm);
const extensions = ["encoding", "crypto", "structured-clone", "url"].map((name) => ({
  name,
  wasm: disk.readFileSync(`${plan.files.extensions}/${name}/${name}.so`),
}));
const libraries = Object.fromEntries(
  Object.entries(plan.libraries).map(([name, file]) => [name, disk.readFileSync(file, "utf8")]),
);
harden();
limitMemory(plan.memoryBytes);
/** The state of the running block. */
let running = newState(Buffer.alloc(0));
let received = new ArrayBuffer(0);
/** Rejected promises that nothing handles, and their reasons. @type {Map<number, string>} */
const unhandled = new Map();
const clock = new Int32Array(new SharedArrayBuffer(4));
const names = moduleNames(parser, javaScriptOf);
const vm = await QuickJS.create({
  wasm: engine,
  memoryLimit: Math.floor(plan.memoryBytes * 0.9),
  maxStackSize: stackBytes,
  interruptHandler: () => running.exit !== undefined,
  onUnhandledRejection(/** @type {any} */ promise, /** @type {any} */ reason, /** @type {boolean} */ isHandled) {
    if (isHandled) unhandled.delete(promise.identity);
    else unhandled.set(promise.identity, describe(reason));
  },
  moduleLoader: {
    normalize: withoutStack((from, name) => names.normalize(from, name)),
    load: withoutStack((name) => names.load(name, exportsOf)),
  },
  extensions: usable(extensions),
});
const guest = makeGuestIn();
hardenAgain();
/** An error that nothing in the program caught, as it is printed. */
class UncaughtError extends Error {}

send(frameType.ready);
for (let message = receive(); message; message = receive()) {
  const { fields } = unpacked(message.body);
  send(frameType.done, ...packed(vm.withScope(() => outcome(fields))));
}
exit(0);

/**
 * The extensions that V8 can compile: the one for URLs needs a newer V8 than Node 20 has.
 *
 * @param {readonly { name: string, wasm: Buffer }[]} files
 */
function usable(files) {
  return files.flatMap(({ name, wasm }) => {
    try {
      const { Module } = Reflect.get(globalThis, "WebAssembly");
      return [{ name, wasm: new Module(wasm) }];
    } catch {
      return [];
    }
  });
}

/** @param {Buffer} input */
function newState(input) {
  /** @type {{ exit: number | undefined, failure: string | undefined, input: Buffer }} */
  const state = { exit: undefined, failure: undefined, input };
  return state;
}

/**
 * Wraps a function so that its errors do not tell the program where this process's files are.
 *
 * @param {(...values: any[]) => any} action
 * @returns {(...values: any[]) => any}
 */
function withoutStack(action) {
  return (...values) => {
    try {
      return action(...values);
    } catch (error) {
      if (error instanceof JSException) throw error;
      const { message } = /** @type {Error} */ (error);
      throw Object.assign(new Error(message), { stack: `Error: ${message}` });
    }
  };
}

function makeGuestIn() {
  const make = vm.evalCode(plan.guest, "<fenced>");
  const asked = withoutStack((fields, bytes) => {
    const given = bytes === undefined || bytes.isUndefined ? undefined : Buffer.from(bytes.toArrayBuffer());
    return vm.newString(JSON.stringify(answer(JSON.parse(fields.toString()), given)));
  });
  const sendFunction = vm.newFunction("send", asked);
  const receivedFunction = vm.newFunction("received", () => vm.newArrayBuffer(received));
  const made = vm.callFunction(make, vm.undefined, sendFunction, receivedFunction, vm.hostToHandle(libraries));
  names.offer(made.getProp("names").toString().split(" "));
  return made;
}

/**
 * Answers the guest.
 *
 * @param {any} fields
 * @param {Buffer} [bytes]
 */
function answer(fields, bytes) {
  received = new ArrayBuffer(0);
  switch (fields.op) {
    case "print":
      sendAll(fields.to === 2 ? frameType.stderr : frameType.stdout, bytes ?? Buffer.alloc(0));
      return {};
    case "sleep":
      Atomics.wait(clock, 0, 0, Number(fields.milliseconds));
      return {};
    case "exit":
      running.exit = Number(fields.code) & 0xff;
      return {};
    case "input":
      received = bufferOf(running.input);
      return { bytes: true };
    case "resolve":
      return names.resolve(fields.from, fields.name);
    case "source":
      return withBytes(names.source(fields.path));
    case "dial":
    case "send":
    case "hang up":
      return withBytes(ask(fields, bytes));
    default:
      return withBytes(askAboutFile(fields, bytes));
  }
}

/** @param {{ fields: any, bytes?: Uint8Array }} answered */
function withBytes({ fields, bytes }) {
  received = bufferOf(bytes ?? Buffer.alloc(0));
  return received.byteLength === 0 ? fields : { ...fields, bytes: true };
}

/** @param {Uint8Array} bytes */
function bufferOf(bytes) {
  return /** @type {ArrayBuffer} */ (Uint8Array.from(bytes).buffer);
}

/**
 * Runs a block.
 *
 * @param {any} fields
 * @returns {{ exitCode: number, over?: true }} `over`: the interpreter has ended with the block.
 */
function outcome({ code, file, env, language, stdin }) {
  running = newState(Buffer.from(stdin));
  unhandled.clear();
  try {
    const name = file === "" ? "/workspace/block" : file;
    call("begin", vm.newString(file), vm.newString(JSON.stringify(env)), stdin === "" ? vm.false : vm.true);
    const text = language === "typescript" ? javaScriptOf(code, name) : code;
    return { exitCode: finished(vm.evalCode(scriptOf(parser, text, name), name, EvalFlags.ASYNC | EvalFlags.STRICT)) };
  } catch (error) {
    return failed(error);
  } finally {
    afterBlock();
  }
}

/**
 * Runs until the program has nothing left to do.
 *
 * @param {any} promise
 */
function finished(promise) {
  const onSuccess = vm.newEphemeralFunction(() => vm.undefined);
  const onFailure = vm.newEphemeralFunction((/** @type {any} */ reason) => {
    running.failure = describe(reason);
    return vm.undefined;
  });
  vm.promiseThenRaw(promise, onSuccess, onFailure);
  for (;;) {
    runJobs();
    if (running.exit !== undefined) return running.exit;
    const [reason = running.failure] = unhandled.values();
    if (reason !== undefined) throw new UncaughtError(reason);
    const left = vm.withScope(() => call("turn").toNumber());
    if (left > 0 || left === -2) vm.withScope(() => wait(left));
    else if (left !== 0) return promise.promiseState === 1 ? call("exitCode").toNumber() : unsettled;
  }
}

/** Runs the program's pending jobs until none are left. */
function runJobs() {
  try {
    vm.executePendingJobs();
  } catch (error) {
    // If the program has exited, this is only the interruption of what it was doing.
    if (running.exit === undefined) throw error;
  }
}

/**
 * Waits for the next timer, or for data on a connection.
 *
 * @param {number} milliseconds - below 0: only for a connection.
 */
function wait(milliseconds) {
  if (milliseconds > 0 && !call("waits").toBoolean()) Atomics.wait(clock, 0, 0, milliseconds);
  else {
    const { fields, bytes } = ask({ op: "wait", ...(milliseconds > 0 ? { milliseconds } : {}) });
    if (fields.connection === undefined) return;
    const content = vm.newArrayBuffer(bufferOf(bytes));
    call("deliver", vm.newNumber(fields.connection), fields.closed === true ? vm.true : vm.false, content);
  }
}

/**
 * The outcome of a block that failed.
 *
 * @param {unknown} error
 * @returns {{ exitCode: number, over?: true }}
 */
function failed(error) {
  if (running.exit !== undefined) return { exitCode: running.exit };
  if (error instanceof TextError || error instanceof UncaughtError) {
    sendAll(frameType.stderr, Buffer.from(`${error.message}\n`));
    return { exitCode: 1 };
  }
  if (error instanceof JSException) {
    const { handle } = /** @type {any} */ (error);
    sendAll(frameType.stderr, Buffer.from(`${describe(handle)}\n`));
    return { exitCode: 1 };
  }
  const { message } = /** @type {{ message?: string }} */ (error ?? {});
  sendAll(frameType.stderr, Buffer.from(`The interpreter crashed: ${message}\n`));
  return { exitCode: 134, over: true };
}

/** Nothing of a block runs on after its end: no timer, and no pending job. */
function afterBlock() {
  running.exit ??= 0;
  try {
    call("end");
    runJobs();
  } catch {
    // If it matters, the next block fails as well.
  }
}

/**
 * Calls a function of the guest. The program may have changed the guest, so nothing relies on the answer.
 *
 * @param {string} name
 * @param {readonly any[]} values
 */
function call(name, ...values) {
  return vm.callFunction(guest.getProp(name), vm.undefined, ...values);
}

/** @param {any} value */
function describe(value) {
  try {
    return call("describe", value).toString();
  } catch {
    return "Uncaught error that cannot be described";
  }
}

/** @param {string} file */
function exportsOf(file) {
  return JSON.parse(call("exportsOf", vm.newString(file)).toString());
}
