import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { frameType, FrameChannel } from "./frames.ts";
import { snapshotInputs, startPython } from "./start-process.ts";

/** Far more than the size of a snapshot. */
const mostBytes = 268_435_456;
const makingTakesMs = 120_000;
/** Windows has no such flag. */
const noFollow = process.platform === "win32" ? 0 : fs.constants.O_NOFOLLOW;

/** Open snapshots of this process, by path. Never closed, because other executors use them. */
const opened = new Map<string, Promise<number>>();

/**
 * Returns a descriptor of the snapshot that interpreters start from; creates it if it is not in the cache.
 *
 * @param directory - where to keep it. Default: the user's cache directory.
 */
export function openSnapshot(directory: string = defaultDirectory()): Promise<number> {
  const file = path.join(directory, `python-${inputsHash()}.snapshot`);
  let snapshot = opened.get(file);
  if (!snapshot) {
    snapshot = openOrMake(directory, file);
    opened.set(file, snapshot);
    snapshot.catch(() => opened.delete(file));
  }
  return snapshot;
}

/** Discards a snapshot whose content was altered, so that it is created again. */
export function forgetSnapshot(directory: string = defaultDirectory()): void {
  const file = path.join(directory, `python-${inputsHash()}.snapshot`);
  opened.delete(file);
  fs.rmSync(file, { force: true });
}

async function openOrMake(directory: string, file: string): Promise<number> {
  const trusted = makeTrustedDirectory(directory);
  const present = trusted ? openTrusted(file) : undefined;
  if (present !== undefined) return present;
  const snapshot = await makeSnapshot();
  if (!trusted) return keepWithoutName(snapshot);
  const temporary = `${file}.${randomUUID()}`;
  try {
    fs.writeFileSync(temporary, snapshot, { mode: 0o600, flag: "wx" });
    fs.renameSync(temporary, file);
  } catch {
    // The disk is full or read-only: the next program creates the snapshot again.
    fs.rmSync(temporary, { force: true });
  }
  return openTrusted(file) ?? keepWithoutName(snapshot);
}

/** Creates a snapshot in a process that runs only our own code. */
async function makeSnapshot(): Promise<Buffer> {
  const { child, socket } = startPython({ memoryBytes: mostBytes * 4, sandboxed: false });
  const channel = new FrameChannel(socket);
  const timer = setTimeout(() => child.kill("SIGKILL"), makingTakesMs);
  const pieces: Buffer[] = [];
  try {
    for (let frame = await channel.next(); frame; frame = await channel.next()) {
      if (frame.type === frameType.ready) return Buffer.concat(pieces);
      pieces.push(frame.body);
    }
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
    channel.destroy();
  }
  throw new BackendUnavailableError("The Python interpreter could not be loaded", {
    remedy: "Reinstall pyodide; the interpreter needs Node 20.19 or later and half a gigabyte of memory.",
  });
}

/** Creates the directory. Returns whether only its owner and root can have written to it. */
function makeTrustedDirectory(directory: string): boolean {
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (let each = directory; ; each = path.dirname(each)) {
      const sticky = (fs.lstatSync(each).mode & 0o1000) !== 0;
      // In a directory like /tmp, others can add names, but not replace the one below it, which is ours.
      if (!isOurs(fs.lstatSync(each), { shared: sticky && each !== directory })) return false;
      if (each === path.dirname(each)) return true;
    }
  } catch {
    return false;
  }
}

function isOurs(entry: fs.Stats, { shared }: { readonly shared: boolean }): boolean {
  if (process.platform === "win32") return true;
  const owned = entry.uid === process.getuid?.() || entry.uid === 0;
  return owned && !entry.isSymbolicLink() && (shared || (entry.mode & 0o022) === 0);
}

/** Opens the file if nobody else can have written it; returns `undefined` otherwise, or if it does not exist. */
function openTrusted(file: string): number | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = fs.openSync(file, fs.constants.O_RDONLY | noFollow);
    const entry = fs.fstatSync(descriptor);
    if (entry.isFile() && entry.nlink === 1 && entry.size < mostBytes && isOurs(entry, { shared: false })) {
      return descriptor;
    }
    fs.closeSync(descriptor);
  } catch {
    if (descriptor !== undefined) fs.closeSync(descriptor);
  }
  return undefined;
}

function keepWithoutName(snapshot: Buffer): number {
  const directory = fs.mkdtempSync(path.join(tmpdir(), "fenced-snapshot-"));
  try {
    const descriptor = fs.openSync(path.join(directory, "snapshot"), "wx+", 0o600);
    fs.writeSync(descriptor, snapshot);
    return descriptor;
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

function inputsHash(): string {
  const hash = createHash("sha256").update(process.versions.v8);
  for (const input of snapshotInputs()) hash.update(input).update("\0");
  return hash.digest("hex").slice(0, 32);
}

function defaultDirectory(): string {
  const home = homedir();
  if (process.platform === "win32") return path.join(process.env.LOCALAPPDATA ?? home, "fenced", "cache");
  if (process.platform === "darwin") return path.join(home, "Library", "Caches", "fenced");
  const configured = process.env.XDG_CACHE_HOME;
  return path.join(
    configured !== undefined && path.isAbsolute(configured) ? configured : path.join(home, ".cache"),
    "fenced",
  );
}
