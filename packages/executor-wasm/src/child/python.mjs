import { createHash } from "node:crypto";
import disk from "node:fs";
import { harden, hardenAgain } from "./harden.mjs";
import { forgetNodes, hostFileSystem, pieceBytes } from "./host-file-system.mjs";
import { limitMemory } from "./limit-memory.mjs";
import { packageFiles } from "./package-files.mjs";
import { ask, frameType, packed, receive, send, sendAll, unpacked } from "./wire.mjs";

/**
 * Runs Python blocks, one after another, as the host sends them. The host has started this process with an empty environment,
 * access to no file but the interpreter's own, and no way to create code from text.
 *
 * @typedef {object} Plan
 * @property {string} directory - where the interpreter's files are.
 * @property {number} memoryBytes
 * @property {Readonly<Record<string, string>>} env - the environment of the Python program, which differs from this process's.
 * @property {Load} [load] - what to create a snapshot of. Without it, descriptor 4 is a snapshot, preceded by its SHA-256.
 * @property {boolean} packages - descriptor 6 is a file with packages.
 * @property {boolean} installs - code can install more packages.
 *
 * @typedef {object} Load
 * @property {Readonly<Record<string, string>>} modules - in Python, by name.
 * @property {string} [wheel] - the file of a wheel from which they import.
 */

const snapshotFile = 4;
const packagesFile = 6;
const sitePackages = "/lib/python3.14/site-packages";
const wheelFile = "/tmp/modules.whl";
const digestBytes = 32;
const workspace = "/workspace";
const exit = process.exit.bind(process);
const { fstatSync, readSync: readAt } = disk;

/** @type {Plan} */
const plan = JSON.parse(process.argv[1] ?? "");
// The interpreter uses it as its own name.
process.argv[1] = "python";
const snapshot = plan.load ? undefined : readSnapshot();
const wheel = plan.load?.wheel === undefined ? undefined : disk.readFileSync(plan.load.wheel);
const digest = (/** @type {Uint8Array} */ bytes) => createHash("sha256").update(bytes).digest();
if (snapshot && !digest(snapshot.content).equals(snapshot.digest)) {
  send(frameType.badSnapshot);
  exit(1);
}
const hash = createHash("sha256");
/**
 * Why the program or a library aborted the interpreter, as `os.abort()` does; empty if it did not say.
 *
 * @type {string | undefined}
 */
let abortReason;
harden();
limitMemory(plan.memoryBytes);
const { loadPyodide } = await import(`file://${plan.directory}/pyodide.mjs`);
const python = await loadPyodide({
  indexURL: plan.directory,
  jsglobals: Object.create(null),
  env: { HOME: "/home/pyodide" },
  ...(snapshot ? { _loadSnapshot: snapshot.content } : { _makeSnapshot: true }),
});
if (snapshot) serve();
else makeSnapshot();

function readSnapshot() {
  const bytes = readFrom(snapshotFile, 0, fstatSync(snapshotFile).size);
  return { digest: bytes.subarray(0, digestBytes), content: bytes.subarray(digestBytes) };
}

/**
 * Reads by position: other processes read the same open file.
 *
 * @param {number} file
 * @param {number} start
 * @param {number} length
 */
function readFrom(file, start, length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    const count = readAt(file, bytes, at, length - at, start + at);
    if (count === 0) return bytes.subarray(0, at);
    at += count;
  }
  return bytes;
}

/** Sends the host a snapshot to keep: the interpreter's memory, with all modules that run blocks imported. */
function makeSnapshot() {
  const lines = Object.entries(plan.load?.modules ?? {}).flatMap(([name, text]) => [
    `sys.modules["${name}"] = types.ModuleType("${name}")`,
    `exec(compile(${JSON.stringify(text)}, "<fenced>", "exec"), sys.modules["${name}"].__dict__)`,
  ]);
  if (wheel) {
    python.FS.writeFile(wheelFile, wheel);
    lines.unshift(`sys.path.insert(0, "${wheelFile}")`);
    // All that they need is loaded then.
    lines.push(`sys.path.remove("${wheelFile}")`, `sys.path_importer_cache.pop("${wheelFile}")`);
  }
  python.runPython(["import sys, types", ...lines, "del sys, types"].join("\n"));
  if (wheel) python.FS.unlink(wheelFile);
  const made = python.makeMemorySnapshot();
  sendAll(frameType.snapshot, hash.update(made).digest());
  sendAll(frameType.snapshot, made);
  send(frameType.ready);
  exit(0);
}

function serve() {
  const { FS } = python;
  connectStreams();
  FS.mkdirTree(workspace);
  const files = hostFileSystem(FS, python.ERRNO_CODES);
  FS.mount(files, {}, workspace);
  if (plan.packages) {
    mountPackages(fstatSync(packagesFile).size, (at, length) => readFrom(packagesFile, at, length));
  }
  FS.chdir(workspace);
  const blocks = python.pyimport("_fenced");
  blocks.prepare(JSON.stringify(plan.env), plan.installs);
  const { run } = blocks;
  // oxlint-disable-next-line no-underscore-dangle -- Emscripten looks for it there
  python._module.onAbort = (/** @type {unknown} */ what) => {
    abortReason = String(what ?? "");
  };
  hardenAgain();
  send(frameType.ready);
  for (;;) {
    const message = receive();
    if (!message) return exit(0);
    forgetNodes(FS, files);
    const { fields } = unpacked(message.body);
    send(
      frameType.done,
      ...packed(
        outcome(() => {
          const { code, file, stdin, env, functions } = fields;
          return run(code, file, stdin, JSON.stringify(env), JSON.stringify(functions));
        }),
      ),
    );
  }
}

/**
 * @param {number} size - of the file with the packages.
 * @param {(at: number, length: number) => Buffer} read
 */
function mountPackages(size, read) {
  const { FS } = python;
  if (FS.lookupPath(sitePackages).node.mount.mountpoint === sitePackages) FS.unmount(sitePackages);
  FS.mount(packageFiles(FS, python.ERRNO_CODES, size, read), {}, sitePackages);
}

/**
 * Reads from the file with the packages that the code has just installed.
 *
 * @param {number} start
 * @param {number} length
 */
function readInstalled(start, length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    const piece = ask({ op: "packaged", at: start + at, length: Math.min(length - at, pieceBytes) }).bytes;
    if (piece.length === 0) return bytes.subarray(0, at);
    piece.copy(bytes, at);
    at += piece.length;
  }
  return bytes;
}

/**
 * @param {() => number} run
 * @returns {{ exitCode: number, over?: true }} `over`: the interpreter has ended with the block.
 */
function outcome(run) {
  try {
    return { exitCode: run() };
  } catch (error) {
    const { name, status, message } = /** @type {{ name?: string, status?: number, message?: string }} */ (error ?? {});
    if (name === "ExitStatus" || name === "Exit") return { exitCode: (status ?? 1) & 0xff, over: true };
    const reason = abortReason === undefined ? `The interpreter crashed: ${message}` : `Aborted ${abortReason}`.trim();
    sendAll(frameType.stderr, Buffer.from(`${reason}\n`));
    return { exitCode: 134, over: true };
  }
}

/** Output goes to the host as it is printed, and the program waits until the host has read it. */
function connectStreams() {
  const writer = (/** @type {number} */ type) => ({
    write(/** @type {Uint8Array} */ bytes) {
      sendAll(type, bytes);
      return bytes.length;
    },
  });
  python.setStdout(writer(frameType.stdout));
  python.setStderr(writer(frameType.stderr));
  python.setStdin({ stdin: () => null });
  const { FS } = python;
  const clock = new Int32Array(new SharedArrayBuffer(4));
  const operations = {
    /** @type {(stream: unknown, buffer: Uint8Array, offset: number, length: number) => number} */
    write(_stream, buffer, offset, length) {
      const milliseconds = Number(Buffer.from(buffer.subarray(offset, offset + length)).toString());
      Atomics.wait(clock, 0, 0, Number.isFinite(milliseconds) ? milliseconds : 0);
      return length;
    },
  };
  const device = FS.makedev(86, 0);
  FS.registerDevice(device, operations);
  FS.mkdev("/dev/sleep", device);
  connectCalls(FS);
}

/**
 * A device for programs' connections to host functions: a request is written to it, and the answer is read from it.
 *
 * @param {any} FS
 */
function connectCalls(FS) {
  let written = Buffer.alloc(0);
  let answer = Buffer.alloc(0);
  const requested = (/** @type {Buffer} */ request) => {
    try {
      const { fields, bytes } = unpacked(request);
      const given = ask(fields, bytes);
      if (given.fields.packages !== undefined) mountPackages(given.fields.packages, readInstalled);
      return given;
    } catch {
      // Programs can write anything to the device.
      return { fields: { error: "EINVAL" }, bytes: Buffer.alloc(0) };
    }
  };
  const operations = {
    /** @type {(stream: unknown, buffer: Uint8Array, offset: number, length: number) => number} */
    write(_stream, buffer, offset, length) {
      const piece = Buffer.from(buffer.buffer, buffer.byteOffset + offset, length);
      written = Buffer.concat([written, piece]);
      return length;
    },
    /** @type {(stream: unknown, buffer: Uint8Array, offset: number, length: number) => number} */
    read(_stream, buffer, offset, length) {
      if (written.length > 0) {
        const request = written;
        written = Buffer.alloc(0);
        const given = requested(request);
        answer = Buffer.concat(packed(given.fields, given.bytes));
      }
      const taken = answer.subarray(0, length);
      answer = answer.subarray(taken.length);
      new Uint8Array(buffer.buffer, buffer.byteOffset + offset).set(taken);
      return taken.length;
    },
  };
  const device = FS.makedev(87, 0);
  FS.registerDevice(device, operations);
  FS.mkdev("/dev/host-functions", device);
}
