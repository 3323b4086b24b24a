import type {
  ArchiveOptions,
  CodeExecutor,
  ExtractOptions,
  ExtractReceipt,
  FileEntry,
  FileEvent,
  FileInfo,
  FileStat,
  ListOptions,
  ReadStreamOptions,
  StatOptions,
  WatchOptions,
  WorkspaceFiles,
  WriteOptions,
} from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import { movedOn } from "./sessions/session-ended.ts";

/** A session or a lease, which holds an executor for a while. */
export interface Holder {
  /** Aborted when it ends, with the error for calls in progress. */
  readonly signal: AbortSignal;
  /** Keeps it in use until the returned function is called. */
  hold(): () => void;
  /** Returns the started executor. */
  executor(signal?: AbortSignal): Promise<CodeExecutor>;
  /** Calls `action` with the executor, which counts as in use meanwhile. */
  use<T>(action: (executor: CodeExecutor) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Called before `hold()`. @throws movedOn if it takes no calls now, and must be looked for again. */
  assertStays?(): void;
  /** Called after each change, before it is answered. */
  changed?(): Promise<void>;
  /** Called before a change is answered. @throws ExecutorStoppedError if what was done is not part of it any more. */
  assertHeld?(): void;
}

/** A holder that is in use. */
interface Held {
  readonly holder: Holder;
  readonly executor: CodeExecutor;
  readonly letGo: () => void;
}

interface Opened {
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  /** Resolves when the file is complete and part of the session; rejects if it is not. */
  readonly over: Promise<void>;
}

/**
 * The files of a held executor. The first call binds them to the current holder, or to a new one. Once that holder has
 * ended, calls reject: a late call neither opens a new one nor reaches another one's files. A holder that goes on
 * elsewhere is found again.
 */
export class HeldFiles implements WorkspaceFiles {
  readonly #find: () => Promise<Holder>;
  #holder: Promise<Holder> | undefined;

  constructor(find: () => Promise<Holder>) {
    this.#find = find;
  }

  list(directory: string | undefined, options: ListOptions & { readonly directories: true }): Promise<FileEntry[]>;
  list(directory?: string, options?: ListOptions): Promise<FileInfo[]>;
  list(directory?: string, options?: ListOptions): Promise<FileInfo[]> {
    return this.#use(({ files }) => files.list(directory, options));
  }

  stat(path: string, options?: StatOptions): Promise<FileStat> {
    return this.#use(({ files }) => files.stat(path, options));
  }

  read(path: string): Promise<Uint8Array> {
    return this.#use(({ files }) => files.read(path));
  }

  readStream(path: string, options: ReadStreamOptions = {}): ReadableStream<Uint8Array> {
    return ReadableStream.from(
      this.#stream(options.signal, ({ files }, signal) => files.readStream(path, { ...options, signal })),
    );
  }

  write(path: string, data: Uint8Array | string, options?: WriteOptions): Promise<void> {
    return this.#change(({ files }) => files.write(path, data, options));
  }

  move(from: string, to: string): Promise<void> {
    return this.#change(({ files }) => files.move(from, to));
  }

  makeDirectory(path: string): Promise<void> {
    return this.#change(({ files }) => files.makeDirectory(path));
  }

  watch(path: string, options: WatchOptions = {}): AsyncGenerator<FileEvent, void, void> {
    return this.#stream(options.signal, ({ files }, signal) => files.watch(path, { ...options, signal }));
  }

  writeStream(path: string, options?: WriteOptions): WritableStream<Uint8Array> {
    let opened: Promise<Opened> | undefined;
    const open = (): Promise<Opened> => (opened ??= this.#openWriter(path, options));
    return new WritableStream({
      async write(chunk) {
        await (await open()).writer.write(chunk);
      },
      async close() {
        const { writer, over } = await open();
        await writer.close();
        await over;
      },
      async abort(reason) {
        const { writer } = (await opened?.catch(() => undefined)) ?? {};
        await writer?.abort(reason);
      },
    });
  }

  archive(options: ArchiveOptions = {}): ReadableStream<Uint8Array> {
    return ReadableStream.from(
      this.#stream(options.signal, ({ files }, signal) => files.archive({ ...options, signal })),
    );
  }

  async extract(archive: AsyncIterable<Uint8Array>, options?: ExtractOptions): Promise<ExtractReceipt> {
    return this.#use(async ({ files }, holder) => {
      const signal = joinSignals(holder.signal, options?.signal);
      const receipt = await files.extract(archive, { ...options, signal });
      await holder.changed?.();
      return receipt;
    });
  }

  remove(path: string): Promise<void> {
    return this.#change(({ files }) => files.remove(path));
  }

  upload(localPaths: readonly string[]): Promise<void> {
    return this.#change(({ files }) => files.upload(localPaths));
  }

  download(paths: readonly string[], toDirectory: string): Promise<string[]> {
    return this.#use(({ files }) => files.download(paths, toDirectory));
  }

  async *#stream<T>(
    signal: AbortSignal | undefined,
    open: (executor: CodeExecutor, signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T, void, void> {
    const { holder, executor, letGo } = await this.#hold(signal);
    try {
      yield* open(executor, joinSignals(holder.signal, signal));
    } finally {
      letGo();
    }
  }

  /** Opens a writer, and holds the executor until the file is complete or has failed. */
  async #openWriter(path: string, options?: WriteOptions): Promise<Opened> {
    const { holder, executor, letGo } = await this.#hold();
    try {
      const writer = executor.files.writeStream(path, options).getWriter();
      // Nothing may be written after the end, when the workspace may belong to another user.
      const abort = (): void => void writer.abort(holder.signal.reason).catch(() => {});
      holder.signal.addEventListener("abort", abort, { once: true });
      const letGoNow = (): void => {
        holder.signal.removeEventListener("abort", abort);
        letGo();
      };
      const over = writer.closed
        .then(async () => {
          await holder.changed?.();
          holder.assertHeld?.();
        })
        .finally(letGoNow);
      // A writer that fails says so itself.
      over.catch(() => {});
      return { writer, over };
    } catch (error) {
      letGo();
      throw error;
    }
  }

  #change(action: (executor: CodeExecutor) => Promise<void>): Promise<void> {
    return this.#use(async (executor, holder) => {
      await action(executor);
      await holder.changed?.();
    });
  }

  async #use<T>(action: (executor: CodeExecutor, holder: Holder) => Promise<T>): Promise<T> {
    for (;;) {
      const holder = await this.#bind();
      try {
        return await holder.use((executor) => action(executor, holder));
      } catch (error) {
        if (error !== movedOn) throw error;
        this.#holder = undefined;
      }
    }
  }

  async #hold(signal?: AbortSignal): Promise<Held> {
    for (;;) {
      const holder = await this.#bind();
      let letGo: (() => void) | undefined;
      try {
        holder.assertStays?.();
        letGo = holder.hold();
        return { holder, executor: await holder.executor(signal), letGo };
      } catch (error) {
        letGo?.();
        if (error !== movedOn) throw error;
        this.#holder = undefined;
      }
    }
  }

  async #bind(): Promise<Holder> {
    this.#holder ??= this.#find();
    const found = this.#holder;
    try {
      return await found;
    } catch (error) {
      // A later attempt may find room.
      if (this.#holder === found) this.#holder = undefined;
      throw error;
    }
  }
}
