import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { FencedError } from "../errors/fenced-error.ts";
import { readChain } from "./record-chain.ts";
import { hashOf, type LineHead, lineOf, longestLine, noLine, parseLine } from "./record-line.ts";
import { withLock } from "./record-lock.ts";
import type { RecordedRun, RunRecorder } from "./run-record.ts";

const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

/** What a record begins with; other files must not be written to. */
const firstBytes = '{"version":1,"seq":1,"time":"';

/**
 * What writes to each file in this program, one after another; lines of other programs may be in between. Otherwise many executors
 * would wait for the lock together, and some of them too long.
 */
const writing = new Map<string, Promise<unknown>>();

/** Where the next line goes. */
interface RecordEnd extends Omit<LineHead, "seq"> {
  /** Identifies the file as it was then. */
  readonly file: string;
  /** Number of the last line. */
  readonly count: number;
  /** The file ends with a line break, or is empty. */
  readonly isEnded: boolean;
}

/**
 * A record of runs in a file, for the option `record` of executors: one line of JSON for each run, with what the code was (by its
 * SHA-256), which files it changed, which hosts it reached, which host functions it called, and how it ended. Each line has the
 * SHA-256 of the line before, so that `verifyRecord` finds changes. Any number of executors and programs on one machine can share
 * the file; keep it where the code cannot write.
 *
 * @param file - created, for its owner only, if it is not there; continued if it is. Beside it, `FILE.lock` exists for moments.
 *
 * @example
 * const executor = new DockerCommandLineCodeExecutor({ record: recordFile("runs.jsonl") });
 */
export function recordFile(file: string): RunRecorder {
  return new RecordFile(path.resolve(file));
}

class RecordFile implements RunRecorder {
  readonly #path: string;
  #end: RecordEnd | undefined;

  constructor(file: string) {
    this.#path = file;
  }

  begin(): Promise<void> {
    return this.#locked(async (handle) => {
      this.#end = await this.#findEnd(handle);
    });
  }

  add(run: RecordedRun): Promise<void> {
    return this.#locked(async (handle) => {
      const end = await this.#findEnd(handle);
      // After a failure, what is in the file is not known.
      this.#end = undefined;
      const seq = end.count + 1;
      const line = lineOf({ seq, previous: end.previous, torn: end.torn }, run);
      // In one call, so that a program that dies meanwhile leaves as little as possible.
      await handle.writeFile(Buffer.concat([Buffer.from(end.isEnded ? "" : "\n"), line, Buffer.from("\n")]));
      await handle.datasync();
      this.#end = { file: await identity(handle), count: seq, previous: hashOf(line), isEnded: true };
    });
  }

  #locked(action: (handle: FileHandle) => Promise<void>): Promise<void> {
    const run = async (): Promise<void> => {
      try {
        await withLock(this.#path, async () => {
          await using handle = await open(this.#path, flags, 0o600);
          if (!(await handle.stat()).isFile()) throw new Error("it is not a file");
          await action(handle);
        });
      } catch (error) {
        throw FencedError.isInstance(error) ? error : notRecorded(this.#path, error);
      }
    };
    const done = (writing.get(this.#path) ?? Promise.resolve()).then(run);
    const settled = done.then(
      () => {},
      () => {},
    );
    writing.set(this.#path, settled);
    void settled.then(() => {
      if (writing.get(this.#path) === settled) writing.delete(this.#path);
    });
    return done;
  }

  async #findEnd(handle: FileHandle): Promise<RecordEnd> {
    const file = await identity(handle);
    if (this.#end?.file === file) return this.#end;
    const line = await lastLine(handle);
    if (line === "none") return { file, count: 0, previous: noLine, isEnded: true };
    const head = line && parseLine(line);
    if (line && head) return { file, count: head.seq, previous: hashOf(line), isEnded: true };
    // A program has died while it wrote, so more than the last line matters.
    const chain = await readChain(this.#path);
    if ("reason" in chain) throw notRecorded(this.#path, new Error(`line ${chain.line}: ${chain.reason}`));
    const { count, lastHash, tornEnd, isEnded } = chain;
    const torn = tornEnd && { lines: tornEnd.lines, sha256: tornEnd.sha256 };
    if (torn && count === 0 && !(await beginsAsRecord(handle))) {
      throw notRecorded(this.#path, new Error("it is another kind of file"));
    }
    return { file, count, previous: lastHash, torn, isEnded };
  }
}

/** Whether a file without a whole line has the beginning of one. */
async function beginsAsRecord(handle: FileHandle): Promise<boolean> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(firstBytes.length), 0, firstBytes.length, 0);
  return firstBytes.startsWith(buffer.toString("latin1", 0, bytesRead));
}

/** The last line; `undefined` if it is not complete, or too long. */
async function lastLine(handle: FileHandle): Promise<Buffer | "none" | undefined> {
  const { size } = await handle.stat();
  const length = Math.min(size, longestLine + 2);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
  if (size === 0) return "none";
  if (bytesRead < length || buffer[length - 1] !== 10) return undefined;
  const start = buffer.subarray(0, length - 1).lastIndexOf(10) + 1;
  return start === 0 && length < size ? undefined : buffer.subarray(start, length - 1);
}

async function identity(handle: FileHandle): Promise<string> {
  const { dev, ino, size } = await handle.stat();
  return `${dev}-${ino}-${size}`;
}

function notRecorded(file: string, cause: unknown): BackendUnavailableError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new BackendUnavailableError(`The record ${JSON.stringify(file)} cannot be continued: ${reason}`, {
    remedy:
      "Check the disk and the file's permissions, and the file itself with `fenced verify-record`; or name another one.",
    cause,
  });
}
