import {
  type ArchiveOptions,
  type ExtractOptions,
  type ExtractReceipt,
  type FileEntry,
  type FileEvent,
  type FileInfo,
  type FileStat,
  InvalidInputError,
  type ListOptions,
  type ReadStreamOptions,
  type StatOptions,
  type WatchOptions,
  type WorkspaceFiles,
  type WriteOptions,
} from "@fenced/core";
import { followSignals, joinSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions, optionsSchema, type OptionSchemas, signalOption, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";
import { extractArchive } from "../archives/extract-archive.ts";
import { writeArchive } from "../archives/write-archive.ts";
import type { Place } from "../place.ts";
import type { SessionLife } from "../session-life.ts";
import { absolutePath } from "./absolute-paths.ts";
import { checkReadStreamOptions, readableFrom, writableInto } from "./file-streams.ts";
import { cannotDo } from "./workspace-errors.ts";
import { normalizeWorkspacePath, refuseHome, relativeToWorkspace } from "./workspace-path.ts";

/** The names of executors' own files begin with that. */
const ownPrefix = ".fenced-";
/** Each is a process in the place. */
const mostWatches = 64;

const bytes = z.custom<Uint8Array>((value) => ArrayBuffer.isView(value), "must be a string or a Uint8Array");
const argumentsOf = {
  list: z.object({ directory: z.string().optional() }),
  move: z.object({ from: z.string(), to: z.string() }),
  path: z.object({ path: z.string() }),
  write: z.object({ path: z.string(), data: z.union([z.string(), bytes], "must be a string or a Uint8Array") }),
  upload: z.object({ localPaths: z.array(z.string()) }),
  download: z.object({ paths: z.array(z.string()), toDirectory: z.string() }),
};

const listOptions: z.ZodType<ListOptions> = optionsSchema({
  recursive: z.boolean().exactOptional(),
  directories: z.boolean().exactOptional(),
} satisfies OptionSchemas<ListOptions>);
const archiveOptions: z.ZodType<ArchiveOptions> = optionsSchema({
  path: z.string().exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ArchiveOptions>);
const extractOptions: z.ZodType<ExtractOptions> = optionsSchema({
  path: z.string().exactOptional(),
  maxBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ExtractOptions>);
const statOptions: z.ZodType<StatOptions> = optionsSchema({
  followLinks: z.boolean().exactOptional(),
} satisfies OptionSchemas<StatOptions>);
const watchOptions: z.ZodType<WatchOptions> = optionsSchema({
  recursive: z.boolean().exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<WatchOptions>);
const writeOptions: z.ZodType<WriteOptions> = optionsSchema({
  mode: wholeNumberOption({ from: 0, to: 0o777, unit: "permission bits" }).exactOptional(),
} satisfies OptionSchemas<WriteOptions>);

/**
 * The files of the session that is open when they are used; opens a session if there has never been one. Invalid
 * arguments throw `InvalidInputError`.
 */
export class SessionFiles<P extends Place> implements WorkspaceFiles {
  readonly #life: SessionLife<P>;
  #watches = 0;

  constructor(life: SessionLife<P>) {
    this.#life = life;
  }

  list(directory: string | undefined, options: ListOptions & { readonly directories: true }): Promise<FileEntry[]>;
  list(directory?: string, options?: ListOptions): Promise<FileInfo[]>;
  async list(directory?: string, options: ListOptions = {}): Promise<FileInfo[]> {
    checkOptions(argumentsOf.list, { directory }, "files.list");
    const checked = checkOptions(listOptions, options, "files.list");
    const found = await this.#use((files, inside) =>
      files.list(directory === undefined ? undefined : inside(directory), checked),
    );
    return checked.directories === true ? found : found.map(({ path, size }) => ({ path, size }));
  }

  async stat(path: string, options: StatOptions = {}): Promise<FileStat> {
    checkOptions(argumentsOf.path, { path }, "files.stat");
    const { followLinks = true } = checkOptions(statOptions, options, "files.stat");
    return this.#use(async (files, inside) => {
      if (!followLinks && !files.features.includes("links")) throw cannotDo("look at a link itself");
      return files.stat(inside(path), followLinks);
    });
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

  async write(path: string, data: Uint8Array | string, options: WriteOptions = {}): Promise<void> {
    checkOptions(argumentsOf.write, { path, data }, "files.write");
    const checked = checkOptions(writeOptions, options, "files.write");
    refuseHome(path);
    return this.#use(async (files, inside) => {
      assertModes(files, checked);
      return files.write(inside(path), data, checked);
    });
  }

  writeStream(path: string, options: WriteOptions = {}): WritableStream<Uint8Array> {
    checkOptions(argumentsOf.path, { path }, "files.writeStream");
    const checked = checkOptions(writeOptions, options, "files.writeStream");
    refuseHome(path);
    return writableInto(
      () =>
        this.#use(async (files, inside) => {
          assertModes(files, checked);
          return files.writer(inside(path), checked);
        }),
      () => this.#life.signal,
    );
  }

  async move(from: string, to: string): Promise<void> {
    checkOptions(argumentsOf.move, { from, to }, "files.move");
    refuseHome(to);
    return this.#use((files, inside) => files.move(inside(from), inside(to)));
  }

  async makeDirectory(path: string): Promise<void> {
    checkOptions(argumentsOf.path, { path }, "files.makeDirectory");
    refuseHome(path);
    return this.#use((files, inside) => files.makeDirectory(inside(path)));
  }

  watch(path: string, options: WatchOptions = {}): AsyncGenerator<FileEvent, void, void> {
    checkOptions(argumentsOf.path, { path }, "files.watch");
    return this.#watch(path, checkOptions(watchOptions, options, "files.watch"));
  }

  async *#watch(
    path: string,
    { recursive = false, signal: given }: WatchOptions,
  ): AsyncGenerator<FileEvent, void, void> {
    if (this.#watches >= mostWatches) throw tooManyWatches();
    const epoch = this.#life.open();
    const ending = new AbortController();
    const { signal } = ending;
    const unfollow = followSignals(ending, [epoch.signal, given]);
    let events: AsyncGenerator<FileEvent | undefined, void, void> | undefined;
    this.#watches += 1;
    try {
      const { watch, facts } = await epoch.place(signal);
      if (!watch) throw cannotDo("watch directories");
      const directory = normalizeWorkspacePath(relativeToWorkspace(path, facts.workspacePath));
      events = watch({ path: directory, recursive, signal });
      for (;;) {
        // The program there may not end at once.
        const { value, done } = await untilAborted(events.next(), signal);
        if (done === true) return;
        if (value?.path.startsWith(ownPrefix) !== true) yield value ?? { type: "start", path: directory };
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      unfollow();
      ending.abort();
      this.#watches -= 1;
      void events?.return().catch(() => {});
    }
  }

  archive(options: ArchiveOptions = {}): ReadableStream<Uint8Array> {
    const { path = ".", signal } = checkOptions(archiveOptions, options, "files.archive");
    return readableFrom(
      () =>
        this.#life.withFiles(async ({ files, facts: { workspacePath } }) =>
          writeArchive({
            files,
            path: relativeToWorkspace(path, workspacePath),
            workspacePath,
            signal: joinSignals(this.#life.signal, signal),
          }),
        ),
      () => [this.#life.signal, signal],
    );
  }

  async extract(archive: AsyncIterable<Uint8Array>, options: ExtractOptions = {}): Promise<ExtractReceipt> {
    const { path = ".", signal, maxBytes } = checkOptions(extractOptions, options, "files.extract");
    refuseHome(path);
    signal?.throwIfAborted();
    const limit = joinSignals(this.#life.signal, signal);
    return this.#use((files, inside) =>
      extractArchive({ files, archive, path: inside(path), maxBytes, signal: limit }),
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

function tooManyWatches(): InvalidInputError {
  return new InvalidInputError(`More than ${mostWatches} directories are being watched`, {
    remedy: "Leave the loops over those that you no longer need, or watch a directory above them with `recursive`.",
  });
}

function assertModes(files: Place["files"], { mode }: WriteOptions): void {
  if (mode !== undefined && !files.features.includes("modes")) throw cannotDo("set a file's permissions");
}
