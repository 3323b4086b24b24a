/** What `run` and `spawn` take. */
export interface SandboxCommand {
  /** A command line for `/bin/sh`. */
  readonly command: string;
  /** Absolute, or relative to the workspace. Default: the workspace. */
  readonly workingDirectory?: string | undefined;
  /** Variables over the executor's. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Kills everything that the command started; `run`, or `wait()` of `spawn`, then rejects with its reason. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** One path of the sandbox: absolute, or relative to the workspace. */
export interface SandboxPath {
  readonly path: string;
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
  readonly content: Content;
}

/** What is at a path, links followed. */
export interface SandboxFileStat {
  /** `other`: a device, a socket or a named pipe. */
  readonly type: "file" | "directory" | "other";
  /** Size in bytes; 0 for what is not a file. */
  readonly size: number;
}

/** An entry of a directory; links are not followed. */
export interface SandboxDirectoryEntry {
  readonly name: string;
  readonly type: "file" | "directory" | "symlink" | "other";
}

/** A command that runs. */
export interface SandboxProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
}

/** A command that runs, and reads what is written to it meanwhile. */
export interface WritableSandboxProcess extends SandboxProcess {
  /** See `stdin` of `WritableProcess`. Closing it lets the command read to the end of its input. */
  readonly stdin: WritableStream<Uint8Array>;
}

/**
 * An executor in the form of AI SDK 7's `Experimental_SandboxSession`. Everything happens where the code runs, inside of
 * its fence: paths are paths there, and links lead where they lead there.
 */
export interface ExecutorSandboxSession {
  /** Tells a model where commands run. */
  readonly description: string;
  /** Runs a command line to its end. */
  run(options: SandboxCommand): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /**
   * Starts a command line. Its output has to be read, or cancelled, or it waits. `stdin`: its input is written while it
   * runs. Default: false; it is empty.
   */
  spawn(options: SandboxCommand & { readonly stdin: true }): Promise<WritableSandboxProcess>;
  spawn(options: SandboxCommand & { readonly stdin?: boolean | undefined }): Promise<SandboxProcess>;
  /** `null` if there is no file. */
  readFile(options: SandboxPath): Promise<ReadableStream<Uint8Array> | null>;
  /** At most 512 MiB. `null` if there is no file. */
  readBinaryFile(options: SandboxPath): Promise<Uint8Array | null>;
  /** `null` if there is no file. */
  readTextFile(options: SandboxTextPath): Promise<string | null>;
  /** Creates missing directories, and replaces an existing file once all of the content has arrived. */
  writeFile(options: SandboxContent<ReadableStream<Uint8Array>>): Promise<void>;
  writeBinaryFile(options: SandboxContent<Uint8Array>): Promise<void>;
  /** `encoding`: as in `Buffer.from`. Default: `"utf-8"`. */
  writeTextFile(options: SandboxContent<string> & { readonly encoding?: string | undefined }): Promise<void>;
  /** `null` if there is nothing. */
  stat(options: SandboxPath): Promise<SandboxFileStat | null>;
  /** `null` if there is no directory. Rejects if it is something else. */
  listDirectory(options: SandboxPath): Promise<SandboxDirectoryEntry[] | null>;
  /** False if there is nothing. Rejects if it is a directory. */
  deleteFile(options: SandboxPath): Promise<boolean>;
}
