import { execFile } from "node:child_process";
import { closeSync, constants, fstatSync, openSync, unlinkSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

/** Both ends of a pipe, as descriptors that whoever took it must close. */
export interface Pipe {
  readonly readEnd: number;
  readonly writeEnd: number;
}

const batchSize = 32;

/**
 * Real pipes for the output of blocks. Node connects children by sockets, which programs cannot open again: with them
 * `echo oops > /dev/stderr` fails. Node cannot make a pipe, but it can open a named one, of which `mkfifo` makes many
 * at once.
 */
export class PipeSupply {
  readonly #directory: string;
  readonly #names: string[] = [];
  #made = 0;
  #making: Promise<boolean> | undefined;

  /** @param directory - where the names stand until their pipes are taken. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Makes a batch ahead of need; returns whether the system can. */
  async fill(): Promise<boolean> {
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  /** A fresh pipe; `undefined` where the system has none. */
  async take(): Promise<Pipe | undefined> {
    // A block may have removed all the names that were there.
    for (let broken = 0; broken <= batchSize;) {
      const name = this.#names.pop();
      if (this.#names.length < batchSize / 4) void this.fill();
      if (name === undefined) {
        // Others who wait for this batch may be quicker to empty it.
        if (!(await this.fill())) return undefined;
        continue;
      }
      const pipe = openPipe(name);
      if (pipe) return pipe;
      broken += 1;
    }
    return undefined;
  }

  /** Waits until no batch is being made. */
  async settle(): Promise<void> {
    await this.#making;
  }

  async #make(): Promise<boolean> {
    if (process.platform === "win32") return false;
    const names = Array.from({ length: batchSize }, (_, index) =>
      path.join(this.#directory, `pipe-${this.#made + index}`),
    );
    this.#made += batchSize;
    try {
      await promisify(execFile)("mkfifo", ["-m", "600", ...names]);
      this.#names.push(...names);
      return true;
    } catch {
      // Without mkfifo, or when the session's directory is being removed, blocks write to sockets.
      return false;
    }
  }
}

/** `undefined` if a block removed or replaced it, or if there are no more descriptors. */
function openPipe(name: string): Pipe | undefined {
  let readEnd: number | undefined;
  try {
    readEnd = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!fstatSync(readEnd).isFIFO()) throw new Error("not a pipe");
    const writeEnd = openSync(name, constants.O_WRONLY);
    unlinkSync(name);
    return { readEnd, writeEnd };
  } catch {
    if (readEnd !== undefined) closeSync(readEnd);
    return undefined;
  }
}
