import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import type { PythonPrograms } from "../child/child-program.ts";
import { frameType, FrameChannel } from "./frames.ts";
import { installedNode } from "./installed.ts";
import { cacheDirectory, makeKept, openKept, type KeptFile } from "./kept-file.ts";
import { snapshotInputs, startPython } from "./start-process.ts";

/** Far more than the size of a snapshot. */
const mostBytes = 268_435_456;
/** What the names of snapshots begin with, and how many of them the cache keeps: two a version. */
const [prefix, mostSnapshots] = ["python-", 8];
const makingTakesMs = 120_000;

/** Open snapshots of this process, by path. Never closed, because other executors may use them. */
const opened = new Map<string, Promise<number>>();

/**
 * Returns a descriptor of the snapshot that interpreters start from; creates it if it is not in the cache.
 *
 * @param programs - what it has loaded.
 * @param directory - where to keep it. Default: the user's cache directory.
 */
export function openSnapshot(programs: PythonPrograms, directory?: string): Promise<number> {
  const file = snapshotFile(programs, directory);
  const name = path.join(file.directory, file.name);
  let snapshot = opened.get(name);
  if (!snapshot) {
    snapshot = openOrMake(programs, file);
    opened.set(name, snapshot);
    snapshot.catch(() => opened.delete(name));
  }
  return snapshot;
}

/** Discards a snapshot whose content was altered, so that it is created again. */
export function forgetSnapshot(programs: PythonPrograms, directory?: string): void {
  const file = snapshotFile(programs, directory);
  const name = path.join(file.directory, file.name);
  opened.delete(name);
  fs.rmSync(name, { force: true });
}

async function openOrMake(programs: PythonPrograms, file: KeptFile): Promise<number> {
  const present = openKept(file);
  if (present !== undefined) return present;
  const snapshot = await makeSnapshot(programs);
  const write = (descriptor: number): string => {
    fs.writeFileSync(descriptor, snapshot);
    return file.name;
  };
  const made = await makeKept(file.directory, write, { prefix, most: mostSnapshots });
  if (made === undefined) throw notLoaded();
  return made;
}

/** Creates a snapshot in a process that runs only our own code. */
async function makeSnapshot(programs: PythonPrograms): Promise<Buffer> {
  const { child, socket } = startPython({ memoryBytes: mostBytes * 4, sandboxed: false }, programs);
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
  throw notLoaded();
}

function notLoaded(): BackendUnavailableError {
  return new BackendUnavailableError("The Python interpreter could not be loaded", {
    remedy: "Reinstall pyodide, use Node 20.19 or later, and make sure that 512 MiB of memory are free.",
  });
}

function snapshotFile(programs: PythonPrograms, directory: string = cacheDirectory()): KeptFile {
  const hash = createHash("sha256").update(installedNode().version);
  for (const input of snapshotInputs(programs)) hash.update(input).update("\0");
  return { directory, name: `${prefix}${hash.digest("hex").slice(0, 32)}.snapshot`, mostBytes };
}
