import { randomUUID } from "node:crypto";
import type { FileEntry, FileFeature, FileInfo, FileStat, ListOptions } from "@fenced/core";
import type { WorkspaceTree } from "../../checkpoints/workspace-tree.ts";
import { allFileFeatures } from "../../workspace/backend-files.ts";
import { modifiedAt } from "../../workspace/modified-at.ts";
import { pathBytes, pathOfLatin1 } from "../../workspace/path-bytes.ts";
import type { RemoteFileAccess } from "../../workspace/remote-files.ts";
import type { FileContent } from "../../workspace/spool-file.ts";
import type { SupervisedProgram } from "../blocks/supervised-program.ts";
import {
  asPiece,
  inPieces,
  notAnAnswer,
  piecesOf,
  readRecords,
  type ReceivedFile,
  receivedFiles,
  type SentFile,
} from "./file-pieces.ts";
import { ask, type FileRequest, type FilesPlace, type FilesRunner, requestProgram } from "./file-request.ts";
import { SupervisedTree } from "./supervised-tree.ts";

/** Milliseconds that a removal may take in all; code can make new directories as fast as they are removed. */
const removeMs = 300_000;
/** Both limits for removing what is left of a write that failed. */
const dropMs = 5000;
/** A link's target has at most 4096 bytes. */
const longestStatus = 8192;

/** Where a supervisor's files are, and how to access them; read for each request, after `supervisor`. */
export interface SupervisedFilesSettings extends FilesPlace {
  /** Prefix of the names of the session's own files in the workspace. */
  readonly filePrefix: string;
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

interface ListedDirectory {
  readonly path: string;
  readonly type: "directory";
}

/** Workspace files where a supervisor runs; each request is a short Python program there. Linux only. */
export class SupervisedFiles implements RemoteFileAccess {
  readonly seeks = true;
  readonly features: readonly FileFeature[] = allFileFeatures;
  readonly measurable = true;
  readonly tree: WorkspaceTree;
  readonly #settings: SupervisedFilesSettings;

  constructor(settings: SupervisedFilesSettings) {
    this.#settings = settings;
    this.tree = new SupervisedTree(settings);
  }

  async *list(
    directory: string,
    { recursive = true, directories = false }: ListOptions = {},
  ): AsyncGenerator<FileEntry, void, void> {
    for await (const entry of this.#entries(directory, [recursive ? "all" : "top", directories ? "directories" : ""])) {
      if ("type" in entry) yield { path: entry.path, type: "directory", size: 0 };
      else if (entry.state !== undefined) yield { path: entry.path, type: "file", size: entry.size };
    }
  }

  /** Lists files, each with its state, and what cannot be looked at: what is not listed below that may still exist. */
  async *states(directory: string): AsyncGenerator<ListedFile | UnlistedPath, void, void> {
    for await (const entry of this.#entries(directory, ["all", ""])) if (!("type" in entry)) yield entry;
  }

  async *#entries(
    directory: string,
    words: readonly string[],
  ): AsyncGenerator<ListedFile | UnlistedPath | ListedDirectory, void, void> {
    for await (const entry of readRecords(this.#ask({ words: ["list", directory, ...words] }), directory)) {
      if (entry.startsWith("d ")) yield { path: pathOfLatin1(entry.slice(2)), type: "directory" };
      if (entry.startsWith("? ")) yield { path: pathOfLatin1(entry.slice(2)), state: undefined };
      const [, size, state, file] = /^(\d+) (\S+) ([^]+)$/.exec(entry) ?? [];
      if (state !== undefined && file !== undefined) yield { path: pathOfLatin1(file), size: Number(size), state };
    }
  }

  async stat(file: string, followLinks: boolean): Promise<FileStat> {
    let said = "";
    for await (const chunk of this.#ask({ words: ["stat", file, followLinks ? "follow" : ""] })) {
      said = (said + Buffer.from(chunk).toString("latin1")).slice(0, longestStatus);
    }
    const [, type, size, modified, mode = "", target = ""] =
      /^(file|directory|link) (\d+) (-?\d+) ([0-7]+) ([^\0]*)\0$/.exec(said) ?? [];
    if (type !== "file" && type !== "directory" && type !== "link") throw notAnAnswer(file);
    return {
      path: file,
      type,
      size: type === "directory" ? 0 : Number(size),
      ...modifiedAt(Number(modified)),
      mode: Number.parseInt(mode, 8) & 0o777,
      ...(target !== "" && { linkTarget: pathOfLatin1(target) }),
    };
  }

  content(file: string, start: number): AsyncGenerator<Uint8Array, void, void> {
    return this.#ask({ words: ["content", file, String(start)] });
  }

  /** Reads several files in one request, in this order, each up to its size as given. */
  contents<File extends FileInfo>(files: readonly File[]): AsyncGenerator<ReceivedFile<File>, void, void> {
    const stdin = Buffer.concat(files.map(({ path, size }) => pathBytes(`${size} ${path}\0`)));
    return receivedFiles(files, this.#ask({ words: ["contents", "."], stdin }));
  }

  async put(file: string, content: FileContent, mode?: number): Promise<void> {
    await this.putAll([{ path: file, content }], mode);
  }

  /**
   * Creates or replaces several files in one request.
   *
   * @param mode - of all of them. Default: those of the files that they replace, or of new ones.
   * @throws InvalidInputError, WorkspacePathError
   */
  async putAll(files: readonly SentFile[], mode?: number): Promise<void> {
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
      const words = ["put", part, ...(mode === undefined ? [] : [mode.toString(8)])];
      for await (const _ of this.#ask({ words, names, stdin: sent(), supervisor }));
    } catch (error) {
      await this.#drop(part, supervisor);
      throw failure ?? error;
    }
  }

  /** The program that creates or replaces a file, with its input. */
  writing(file: string, content: string): SupervisedProgram {
    const part = `${this.#settings.filePrefix}${randomUUID().slice(0, 12)}.part`;
    const empty = Buffer.alloc(0);
    const pieces = [pathBytes(file), ...piecesOf(Buffer.from(content)), empty, empty].map(asPiece);
    return { ...requestProgram(this.#settings, ["put", part]), stdin: Buffer.concat(pieces) };
  }

  async move(from: string, to: string): Promise<void> {
    for await (const _ of this.#ask({ words: ["move", from, to], names: [from, to] }));
  }

  async makeDirectory(path: string): Promise<void> {
    for await (const _ of this.#ask({ words: ["mkdir", path] }));
  }

  async remove(file: string): Promise<void> {
    for await (const _ of this.#ask({ words: ["remove", file], mostMs: removeMs }));
  }

  /** Removes what a killed program has left. Never rejects, so that it does not hide the failure that it cleans up after. */
  async #drop(part: string, supervisor: FilesRunner): Promise<void> {
    try {
      for await (const _ of this.#ask({ words: ["remove", part], limitMs: dropMs, mostMs: dropMs, supervisor }));
    } catch {
      // The program has removed it itself, or the place is lost, and so is the file.
    }
  }

  #ask(request: FileRequest): AsyncGenerator<Uint8Array, void, void> {
    return ask(this.#settings, request);
  }
}
