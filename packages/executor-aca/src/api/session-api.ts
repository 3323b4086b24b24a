/** How the service says that a piece of code ended. */
export interface ExecutionAnswer {
  readonly succeeded: boolean;
  /** The exit code, where the pool tells one. */
  readonly exitCode?: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The last expression's value; `null` and `undefined`: none. */
  readonly result: unknown;
  readonly error?: { readonly code: string; readonly message: string };
}

/** A piece of code to be run. */
export interface ExecutionOrder {
  readonly code: string;
  /** Milliseconds; `Infinity`: no limit. */
  readonly timeoutMs: number;
  /** Characters of each stream to ask for. */
  readonly maxOutput: number;
  /** Whether it does no harm to run it twice. */
  readonly repeatable: boolean;
  readonly signal: AbortSignal;
}

/** A file or directory in a session. */
export interface RemoteEntry {
  readonly name: string;
  readonly isDirectory: boolean;
  /** Bytes. */
  readonly size: number;
}

/** What is sent as a file. */
export interface FileContent {
  /** Bytes. */
  readonly length: number;
  /** Reads it, once for each attempt. */
  readonly read: () => AsyncIterable<Uint8Array>;
}

/** A file that is being received. */
export interface RemoteContent {
  /** Bytes; `undefined` if the service does not say. */
  readonly length: number | undefined;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The calls for files. Paths are relative to `/mnt/data`, normalised; `.` is the root. */
export interface FilesApi {
  /** Whether files can stand in directories. */
  readonly hasDirectories: boolean;

  listDirectory(directory: string): Promise<RemoteEntry[]>;
  readFile(path: string, signal?: AbortSignal): Promise<RemoteContent>;
  writeFile(path: string, content: FileContent, signal?: AbortSignal): Promise<void>;
  removeFile(path: string, signal?: AbortSignal): Promise<void>;
}

/** One generation of the service's calls, for one session. */
export interface SessionApi extends FilesApi {
  readonly identifier: string;

  /** @throws OutcomeUnknownError if it may or may not have run. */
  execute(order: ExecutionOrder): Promise<ExecutionAnswer>;
}

/** How most messages of `OutcomeUnknownError` begin. */
export const answerLost = "The answer to a block was lost";

/** The code was sent, and nothing tells what became of it; the message says why. */
export class OutcomeUnknownError extends Error {}
