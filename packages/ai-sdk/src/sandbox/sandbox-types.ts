/** Options of `run` and `spawn`. */
export interface SandboxCommand {
  /** A command line for `/bin/sh`. */
  readonly command: string;
  /** Absolute, or relative to the workspace. Default: the workspace. */
  readonly workingDirectory?: string | undefined;
  /** Environment variables; they override the executor's. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Kills everything that the command started; `run`, or `wait()` of `spawn`, then rejects with its reason. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** A path in the sandbox: absolute, or relative to the workspace. */
export interface SandboxPath {
  readonly path: string;
  /** Aborts the operation, which then rejects with its reason. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** A text file to read, or the lines of it to read. */
export interface SandboxTextPath extends SandboxPath {
  /** As in `TextDecoder`. Default: `"utf-8"`. */
  readonly encoding?: string | undefined;
  /** The first line, from 1. Default: 1. */
  readonly startLine?: number | undefined;
  /** The last line, inclusive. Default: the last one of the file. */
  readonly endLine?: number | undefined;
}

/** A file to write. */
export interface SandboxContent<Content> extends SandboxPath {
  /** The whole new content. */
  readonly content: Content;
}

/** Type and size of what is at a path; follows links. */
export interface SandboxFileStat {
  /** `other`: a device, a socket or a named pipe. */
  readonly type: "file" | "directory" | "other";
  /** Size in bytes; 0 unless it is a file. */
  readonly size: number;
}

/** An entry of a directory; does not follow links. */
export interface SandboxDirectoryEntry {
  /** The name, without its directory. */
  readonly name: string;
  /** `other`: a device, a socket or a named pipe. */
  readonly type: "file" | "directory" | "symlink" | "other";
}

/** A running command. */
export interface SandboxProcess {
  /** Standard output. Closes when the command has ended. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** Standard error; closes like `stdout`. */
  readonly stderr: ReadableStream<Uint8Array>;
  /** Waits for the command to end. A command that is blocked because its output is unread does not end. */
  wait(): Promise<{ exitCode: number }>;
  /** Kills the command and everything that it started. Does nothing after its end. */
  kill(): Promise<void>;
}

/** A running command whose input you can write. */
export interface WritableSandboxProcess extends SandboxProcess {
  /** See `stdin` of `WritableProcess`. Closing it ends the command's input. */
  readonly stdin: WritableStream<Uint8Array>;
}

/**
 * An executor in the form of AI SDK 7's `Experimental_SandboxSession`. Everything happens where the code runs, inside
 * its fence, and paths and links are resolved there.
 */
export interface ExecutorSandboxSession {
  /** Tells a model where commands run. */
  readonly description: string;
  /** Runs a command line to its end. */
  run(options: SandboxCommand): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /**
   * Starts a command line. Read or cancel its output, or it blocks. `stdin`: write its input while it runs. Default:
   * false, for empty input.
   */
  spawn(options: SandboxCommand & { readonly stdin: true }): Promise<WritableSandboxProcess>;
  spawn(options: SandboxCommand & { readonly stdin?: boolean | undefined }): Promise<SandboxProcess>;
  /** Streams a file; `null` if it does not exist. Rejects if it is a directory. */
  readFile(options: SandboxPath): Promise<ReadableStream<Uint8Array> | null>;
  /** Reads a whole file; `null` if it does not exist. Rejects if it is a directory, or larger than 512 MiB. */
  readBinaryFile(options: SandboxPath): Promise<Uint8Array | null>;
  /** Reads a text file, like `readBinaryFile`; `null` if it does not exist. Also rejects if the encoding is unknown. */
  readTextFile(options: SandboxTextPath): Promise<string | null>;
  /** Writes a file. Creates missing directories, and replaces an existing file once all of the content has arrived. */
  writeFile(options: SandboxContent<ReadableStream<Uint8Array>>): Promise<void>;
  /** Writes bytes to a file. Creates missing directories, and replaces an existing file. */
  writeBinaryFile(options: SandboxContent<Uint8Array>): Promise<void>;
  /** Does the same with text. `encoding`: as in `Buffer.from`; rejects if it is unknown. Default: `"utf-8"`. */
  writeTextFile(options: SandboxContent<string> & { readonly encoding?: string | undefined }): Promise<void>;
  /** Returns the type and size of what is at a path; `null` if nothing exists there. */
  stat(options: SandboxPath): Promise<SandboxFileStat | null>;
  /** Lists a directory's entries, not those below them; `null` if nothing exists there. Rejects if it is not a directory. */
  listDirectory(options: SandboxPath): Promise<SandboxDirectoryEntry[] | null>;
  /** Deletes a file or a link; returns false if nothing exists there. Rejects if it is a directory. */
  deleteFile(options: SandboxPath): Promise<boolean>;
}
