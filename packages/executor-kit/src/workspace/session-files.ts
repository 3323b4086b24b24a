import type { FileInfo, FileStat, ReadStreamOptions, WorkspaceFiles } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import type { BackendSession } from "../backend-session.ts";
import { isCallFile } from "../host-calls/file-calls.ts";
import type { SessionLife } from "../session-life.ts";
import { checkReadStreamOptions, readableFrom, writableInto } from "./file-streams.ts";

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
export class SessionFiles<Session extends BackendSession> implements WorkspaceFiles {
  readonly #life: SessionLife<Session>;

  constructor(life: SessionLife<Session>) {
    this.#life = life;
  }

  async list(directory?: string): Promise<FileInfo[]> {
    checkOptions(argumentsOf.list, { directory }, "files.list");
    const listed = await this.#use((files) => files.list(directory));
    return listed.filter(({ path }) => !isCallFile(path));
  }

  async stat(path: string): Promise<FileStat> {
    checkOptions(argumentsOf.path, { path }, "files.stat");
    return this.#use((files) => files.stat(path));
  }

  async read(path: string): Promise<Uint8Array> {
    checkOptions(argumentsOf.path, { path }, "files.read");
    return this.#use((files) => files.read(path));
  }

  readStream(path: string, options: ReadStreamOptions = {}): ReadableStream<Uint8Array> {
    checkOptions(argumentsOf.path, { path }, "files.readStream");
    const range = checkReadStreamOptions(options);
    return readableFrom(
      () => this.#use(async (files) => files.content(path, range)),
      () => [this.#life.signal, range.signal],
    );
  }

  async write(path: string, data: Uint8Array | string): Promise<void> {
    checkOptions(argumentsOf.write, { path, data }, "files.write");
    return this.#use((files) => files.write(path, data));
  }

  writeStream(path: string): WritableStream<Uint8Array> {
    checkOptions(argumentsOf.path, { path }, "files.writeStream");
    return writableInto(
      () => this.#use((files) => files.writer(path)),
      () => this.#life.signal,
    );
  }

  async remove(path: string): Promise<void> {
    checkOptions(argumentsOf.path, { path }, "files.remove");
    return this.#use((files) => files.remove(path));
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    checkOptions(argumentsOf.upload, { localPaths }, "files.upload");
    return this.#use((files) => files.upload(localPaths));
  }

  async download(paths: readonly string[], toDirectory: string): Promise<string[]> {
    checkOptions(argumentsOf.download, { paths, toDirectory }, "files.download");
    return this.#use((files) => files.download(paths, toDirectory));
  }

  #use<T>(action: (files: BackendSession["files"]) => Promise<T>): Promise<T> {
    return this.#life.withSession(({ files }) => action(files));
  }
}
