import type { FileInfo, FileStat, ReadStreamOptions, WorkspaceFiles } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import type { Place } from "../place.ts";
import type { SessionLife } from "../session-life.ts";
import { absolutePath } from "./absolute-paths.ts";
import { checkReadStreamOptions, readableFrom, writableInto } from "./file-streams.ts";
import { refuseHome, relativeToWorkspace } from "./workspace-path.ts";

const bytes = z.custom<Uint8Array>((value) => ArrayBuffer.isView(value), "must be a string or a Uint8Array");
const argumentsOf = {
  list: z.object({ directory: z.string().optional() }),
  path: z.object({ path: z.string() }),
  write: z.object({ path: z.string(), data: z.union([z.string(), bytes], "must be a string or a Uint8Array") }),
  upload: z.object({ localPaths: z.array(z.string()) }),
  download: z.object({ paths: z.array(z.string()), toDirectory: z.string() }),
};

/**
 * The files of the session that is open when they are used; opens a session if there has never been one. Invalid
 * arguments throw `InvalidInputError`.
 */
export class SessionFiles<P extends Place> implements WorkspaceFiles {
  readonly #life: SessionLife<P>;

  constructor(life: SessionLife<P>) {
    this.#life = life;
  }

  async list(directory?: string): Promise<FileInfo[]> {
    checkOptions(argumentsOf.list, { directory }, "files.list");
    return this.#use((files, inside) => files.list(directory === undefined ? undefined : inside(directory)));
  }

  async stat(path: string): Promise<FileStat> {
    checkOptions(argumentsOf.path, { path }, "files.stat");
    return this.#use((files, inside) => files.stat(inside(path)));
  }

  async read(path: string): Promise<Uint8Array> {
    checkOptions(argumentsOf.path, { path }, "files.read");
    return this.#use((files, inside) => files.read(inside(path)));
  }

  readStream(path: string, options: ReadStreamOptions = {}): ReadableStream<Uint8Array> {
    checkOptions(argumentsOf.path, { path }, "files.readStream");
    const range = checkReadStreamOptions(options);
    return readableFrom(
      () => this.#use(async (files, inside) => files.content(inside(path), range)),
      () => [this.#life.signal, range.signal],
    );
  }

  async write(path: string, data: Uint8Array | string): Promise<void> {
    checkOptions(argumentsOf.write, { path, data }, "files.write");
    refuseHome(path);
    return this.#use((files, inside) => files.write(inside(path), data));
  }

  writeStream(path: string): WritableStream<Uint8Array> {
    checkOptions(argumentsOf.path, { path }, "files.writeStream");
    refuseHome(path);
    return writableInto(
      () => this.#use((files, inside) => files.writer(inside(path))),
      () => this.#life.signal,
    );
  }

  async remove(path: string): Promise<void> {
    checkOptions(argumentsOf.path, { path }, "files.remove");
    return this.#use((files, inside) => files.remove(inside(path)));
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    checkOptions(argumentsOf.upload, { localPaths }, "files.upload");
    return this.#use((files) => files.upload(localPaths));
  }

  async download(paths: readonly string[], toDirectory: string): Promise<string[]> {
    checkOptions(argumentsOf.download, { paths, toDirectory }, "files.download");
    const directory = absolutePath(toDirectory, "toDirectory");
    return this.#use((files, inside) => files.download(paths.map(inside), directory));
  }

  /** @param action - `inside` makes an absolute path in the workspace relative to it. */
  #use<T>(action: (files: Place["files"], inside: (path: string) => string) => Promise<T>): Promise<T> {
    return this.#life.withFiles(({ files, facts }) =>
      action(files, (path) => relativeToWorkspace(path, facts.workspacePath)),
    );
  }
}
