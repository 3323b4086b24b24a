import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import {
  BackendUnavailableError,
  ByteQueue,
  InvalidInputError,
  sanitizeTerminalText,
  type FileInfo,
  type FileStat,
} from "@fenced/core";
import { isLiveInput } from "../../processes/program-input.ts";
import type { OutputPiece, Sink } from "../../run/sink.ts";
import { pathBytes, pathOfLatin1 } from "../../workspace/path-bytes.ts";
import { asWorkspaceError } from "../../workspace/pinned-directory.ts";
import type { RemoteFileAccess } from "../../workspace/remote-files.ts";
import type { FileContent } from "../../workspace/spool-file.ts";
import type { ProgramEnd } from "../blocks/supervised-program.ts";
import type { Supervisor } from "../supervisor.ts";

const filesProgram: string = readFileSync(new URL("./files.py", import.meta.url), "utf8");

/** Milliseconds that a request may take without moving any data; code can stop the program that answers. */
const quietMs = 30_000;
/** Milliseconds that a removal may take in all; code can make new directories as fast as they are removed. */
const removeMs = 300_000;
/** Both limits for removing what is left of a write that failed. */
const dropMs = 5000;
/** Maximum size of a piece of a file in bytes; the program sends no larger ones. */
const pieceBytes = 262_144;
/** In place of a piece's length: the file is gone, or cannot be read. */
const [gone, unreadable] = [0xffff_ffff, 0xffff_fffe];
/** Maximum length of one file's entry in a list in characters. */
const longestEntry = 1_048_576;
const longestStatus = 200;
/** Bytes of an answer that may wait for its reader. */
const answerBytes = 262_144;

/** Where a supervisor's files are, and how to access them; read for each request, after `supervisor`. */
export interface SupervisedFilesSettings {
  /** The directory in which programs run. Absolute path there. */
  readonly workspace: string;
  /** Path of Python 3.8 or later, from the `programs` of the inventory. */
  readonly python: string;
  /** Prefix of the names of the session's own files in the workspace. */
  readonly filePrefix: string;
  /** Returns the current supervisor; a lost one may have been replaced. */
  readonly supervisor: () => Promise<Supervisor>;
}

/** A file in a list. */
export interface ListedFile extends FileInfo {
  /** Differs after each change of the file; code cannot set it. */
  readonly state: string;
}

/** What exists but cannot be looked at. It may be a directory with any files in it. */
export interface UnlistedPath {
  readonly path: string;
  readonly state: undefined;
}

/** A file that arrives. */
export interface ReceivedFile<File extends FileInfo = FileInfo> {
  readonly file: File;
  /** `"gone"` if it has been removed meanwhile, `"unreadable"` if the code has made it so. */
  readonly content: AsyncIterable<Uint8Array> | "gone" | "unreadable";
}

/** A file to send. */
export interface SentFile {
  readonly path: string;
  readonly content: FileContent;
}

/** Workspace files where a supervisor runs; each request is a short Python program there. Linux only. */
export class SupervisedFiles implements RemoteFileAccess {
  readonly seeks = true;
  readonly measurable = true;
  readonly #settings: SupervisedFilesSettings;

  constructor(settings: SupervisedFilesSettings) {
    this.#settings = settings;
  }

  async *list(directory: string): AsyncGenerator<FileInfo, void, void> {
    for await (const entry of this.states(directory)) {
      if (entry.state !== undefined) yield { path: entry.path, size: entry.size };
    }
  }

  /** Lists files, each with its state, and what cannot be looked at: what is not listed below that may still exist. */
  async *states(directory: string): AsyncGenerator<ListedFile | UnlistedPath, void, void> {
    let rest = "";
    for await (const chunk of this.#ask({ words: ["list", directory] })) {
      const entries = (rest + Buffer.from(chunk).toString("latin1")).split("\0");
      rest = entries.pop() ?? "";
      if (rest.length > longestEntry) throw notAnAnswer(directory);
      for (const entry of entries) {
        if (entry.startsWith("? ")) yield { path: pathOfLatin1(entry.slice(2)), state: undefined };
        const [, size, state, file] = /^(\d+) (\S+) ([^]+)$/.exec(entry) ?? [];
        if (state !== undefined && file !== undefined) yield { path: pathOfLatin1(file), size: Number(size), state };
      }
    }
  }

  async stat(file: string): Promise<FileStat> {
    let said = "";
    for await (const chunk of this.#ask({ words: ["stat", file] })) {
      said = (said + Buffer.from(chunk).toString()).slice(0, longestStatus);
    }
    const [, type, size, modified] = /^(file|directory) (\d+) (\d+)\n$/.exec(said) ?? [];
    if (type !== "file" && type !== "directory") throw notAnAnswer(file);
    return { path: file, type, size: type === "file" ? Number(size) : 0, modifiedAt: new Date(Number(modified)) };
  }

  content(file: string, start: number): AsyncGenerator<Uint8Array, void, void> {
    return this.#ask({ words: ["content", file, String(start)] });
  }

  /** Reads several files in one request, in this order, each up to its size as given. */
  async *contents<File extends FileInfo>(files: readonly File[]): AsyncGenerator<ReceivedFile<File>, void, void> {
    const stdin = Buffer.concat(files.map(({ path, size }) => pathBytes(`${size} ${path}\0`)));
    const pieces = readPieces(this.#ask({ words: ["contents", "."], stdin }));
    try {
      for (const file of files) {
        const first = await nextPiece(pieces, file.path);
        if (typeof first === "string") {
          yield { file, content: first };
          continue;
        }
        const rest = untilEmpty(first, pieces, file.path);
        yield { file, content: rest };
        // Skip what was not read.
        while ((await rest.next()).done !== true);
      }
    } finally {
      // End the program there if the reader leaves early.
      await pieces.return();
    }
  }

  async put(file: string, content: FileContent): Promise<void> {
    await this.putAll([{ path: file, content }]);
  }

  /**
   * Creates or replaces several files in one request.
   *
   * @throws InvalidInputError, WorkspacePathError
   */
  async putAll(files: readonly SentFile[]): Promise<void> {
    // What a lost place has received is gone with it: no other one is asked to remove it.
    const supervisor = await this.#settings.supervisor();
    const part = `${this.#settings.filePrefix}${randomUUID().slice(0, 12)}.part`;
    let failure: unknown;
    const sent = async function* (): AsyncGenerator<Uint8Array, void, void> {
      try {
        yield* inPieces(files);
      } catch (error) {
        // Input that breaks off makes the program discard the file.
        failure = error;
      }
    };
    try {
      const names = files.map(({ path }) => path);
      for await (const _ of this.#ask({ words: ["put", part], names, stdin: sent(), supervisor }));
    } catch (error) {
      await this.#drop(part, supervisor);
      throw failure ?? error;
    }
  }

  async remove(file: string): Promise<void> {
    for await (const _ of this.#ask({ words: ["remove", file], mostMs: removeMs }));
  }

  /** Removes what a killed program has left. Never rejects, so that it does not hide the failure that it cleans up after. */
  async #drop(part: string, supervisor: Supervisor): Promise<void> {
    try {
      for await (const _ of this.#ask({ words: ["remove", part], limitMs: dropMs, mostMs: dropMs, supervisor }));
    } catch {
      // The program has removed it itself, or the place is lost, and so is the file.
    }
  }

  async *#ask({
    words,
    names,
    stdin,
    limitMs = quietMs,
    mostMs,
    ...given
  }: FileRequest): AsyncGenerator<Uint8Array, void, void> {
    const [, file = "."] = words;
    const supervisor = given.supervisor ?? (await this.#settings.supervisor());
    const { python, workspace } = this.#settings;
    const ending = new AbortController();
    let late: NodeJS.Timeout | undefined;
    const program = {
      argv: [python, "-I", "-S", "-X", "utf8", "-c", filesProgram, workspace, ...words],
      env: {},
      ...(stdin === undefined ? {} : { stdin: isLiveInput(stdin) ? watched(stdin, () => late?.refresh()) : stdin }),
    };
    const answer = new Answer(ending.signal);
    const ended = answer.follow(supervisor.run(program, answer));
    // Its reader may be busy elsewhere when it fails.
    ended.catch(() => {});
    let passed = limitMs;
    const most =
      mostMs === undefined
        ? undefined
        : setTimeout(() => {
            passed = mostMs;
            ending.abort();
          }, mostMs);
    try {
      for (const pieces = answer.pieces(); ;) {
        late = setTimeout(() => ending.abort(), limitMs);
        const { value, done } = await pieces.next().finally(() => clearTimeout(late));
        late = undefined;
        if (ending.signal.aborted) throw notAnswered(names?.[0] ?? file, passed);
        if (done === true) break;
        yield value;
      }
      if ((await ended).exitCode !== 0) throw refusal(answer.errors, names ?? [file]);
    } finally {
      clearTimeout(most);
      // A reader that leaves early does not need the rest.
      ending.abort();
      answer.drop();
      await ended.catch(() => {});
    }
  }
}

/** What a request's program prints, for one reader. */
class Answer implements Sink<OutputPiece> {
  readonly signal: AbortSignal;
  errors = "";
  readonly #stream: Readable;
  #room: Promise<void> | undefined;
  #resume: () => void = () => {};

  constructor(signal: AbortSignal) {
    this.signal = signal;
    this.#stream = new Readable({ highWaterMark: answerBytes, read: () => this.#resume() });
  }

  write({ type, data }: OutputPiece): Promise<void> | undefined {
    if (type === "stderr") {
      this.errors = (this.errors + Buffer.from(data).toString()).slice(-longestStatus);
      return undefined;
    }
    if (this.signal.aborted || this.#stream.push(Buffer.from(data))) return undefined;
    return (this.#room ??= new Promise((resolve) => {
      this.#resume = () => {
        this.#room = undefined;
        resolve();
      };
    }));
  }

  /** Ends with the program. */
  async follow(program: Promise<ProgramEnd>): Promise<ProgramEnd> {
    try {
      return await program;
    } finally {
      this.#stream.push(null);
    }
  }

  pieces(): AsyncIterator<Uint8Array, undefined> {
    return this.#stream[Symbol.asyncIterator]();
  }

  drop(): void {
    this.#stream.destroy();
  }
}

interface FileRequest {
  readonly words: readonly string[];
  /** The paths that the request is about, for errors. Default: the second word. */
  readonly names?: readonly string[];
  readonly stdin?: Uint8Array | AsyncIterable<Uint8Array>;
  /** Milliseconds without any data. Default: 30 s. */
  readonly limitMs?: number;
  /** Milliseconds in all. Default: no limit. */
  readonly mostMs?: number;
  /** The supervisor to ask. Default: the current one. */
  readonly supervisor?: Supervisor;
}

async function* watched(
  pieces: AsyncIterable<Uint8Array>,
  onPiece: () => void,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const piece of pieces) {
    onPiece();
    yield piece;
  }
}

/** Files for the program: for each, its path, then its pieces, the last one empty; at the end, an empty path. */
async function* inPieces(files: readonly SentFile[]): AsyncGenerator<Uint8Array, void, void> {
  for (const { path, content } of files) {
    yield asPiece(pathBytes(path));
    let left = content.size;
    for await (const chunk of content) {
      left -= chunk.length;
      if (left < 0) break;
      for (let at = 0; at < chunk.length; at += pieceBytes) yield asPiece(chunk.subarray(at, at + pieceBytes));
    }
    if (left !== 0) throw changed(path);
    yield asPiece(Buffer.alloc(0));
  }
  yield asPiece(Buffer.alloc(0));
}

function asPiece(bytes: Uint8Array): Buffer {
  const piece = Buffer.allocUnsafe(4 + bytes.length);
  piece.writeUInt32BE(bytes.length);
  piece.set(bytes, 4);
  return piece;
}

/** A piece of a file, or why there is none. */
type Piece = Uint8Array | "gone" | "unreadable";

/** Reads pieces after their lengths, and marks in place of lengths. Ends early if a length is not valid. */
async function* readPieces(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Piece, void, void> {
  const queue = new ByteQueue();
  let length: number | undefined;
  for await (const chunk of chunks) {
    queue.add(chunk);
    while (queue.length >= (length ?? 4)) {
      if (length === undefined) {
        length = Buffer.from(queue.take(4)).readUInt32BE();
        if (length <= pieceBytes) continue;
        if (length < unreadable) return;
        yield length === gone ? "gone" : "unreadable";
      } else yield queue.take(length);
      length = undefined;
    }
  }
}

/** The pieces of one file. Not a generator, because a reader that leaves early must not end it. */
function untilEmpty(
  first: Uint8Array,
  pieces: AsyncIterator<Piece, void, void>,
  file: string,
): AsyncIterableIterator<Uint8Array> {
  let next: Uint8Array | undefined = first;
  const content: AsyncIterableIterator<Uint8Array> = {
    [Symbol.asyncIterator]: () => content,
    async next() {
      const piece = next ?? (await nextPiece(pieces, file));
      next = undefined;
      if (typeof piece === "string") throw notAnAnswer(file);
      if (piece.length > 0) return { done: false, value: piece };
      next = piece;
      return { done: true, value: undefined };
    },
  };
  return content;
}

async function nextPiece(pieces: AsyncIterator<Piece, void, void>, file: string): Promise<Piece> {
  const { value, done } = await pieces.next();
  if (done === true) throw notAnAnswer(file);
  return value;
}

/** @param said - the errno name, how many of the files are finished, and the message. */
function refusal(said: string, files: readonly string[]): unknown {
  const [, code = "EIO", finished = 0, text = `the request was ended; ${said}`] =
    /^(E[A-Z0-9]+) (\d+) ([^]*)$/.exec(said) ?? [];
  if (code === "ESTALE") return goneWorkspace();
  const file = files[Number(finished)] ?? ".";
  return asWorkspaceError(Object.assign(new Error(sanitizeTerminalText(text.trim())), { code }), file);
}

function goneWorkspace(): BackendUnavailableError {
  return new BackendUnavailableError("The work directory no longer exists where the code runs", {
    remedy: "Stop the executor; the next call starts it with a new one.",
  });
}

function changed(file: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(file)} changed while it was being sent`, {
    remedy: "Send it again when no program writes to it.",
  });
}

function notAnswered(file: string, limitMs: number): BackendUnavailableError {
  return new BackendUnavailableError(
    `The request for ${JSON.stringify(file)} was not answered within ${limitMs / 1000} s`,
    { remedy: "Call restart(), which ends all processes there, and try again." },
  );
}

function notAnAnswer(file: string): BackendUnavailableError {
  return new BackendUnavailableError(`The answer about ${JSON.stringify(file)} does not match the request`, {
    remedy: "Code may have interfered with the request. Call restart(), and try again.",
  });
}
