import type { FileContent } from "@fenced/executor-kit";

/** How a piece of code ended, according to the service. */
export interface ExecutionAnswer {
  readonly succeeded: boolean;
  /** The exit code, if the pool reports one. */
  readonly exitCode?: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The last expression's value; `null` or `undefined` if there is none. */
  readonly result: unknown;
  readonly error?: { readonly code: string; readonly message: string };
}

/** A piece of code to run. */
export interface ExecutionOrder {
  readonly code: string;
  /** Milliseconds; `Infinity` for no limit. */
  readonly timeoutMs: number;
  /** Maximum number of characters to request of each stream. */
  readonly maxOutput: number;
  /** Whether running it twice does no harm. */
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

/** A page of a directory listing. */
export interface RemotePage {
  readonly entries: readonly RemoteEntry[];
  /** The query for the next page; `undefined` on the last page. */
  readonly next: Readonly<Record<string, string>> | undefined;
}

/**
 * One generation of the service's calls, for one session. Paths are relative to `/mnt/data`, normalised; `.` is the root.
 */
export interface SessionApi {
  readonly identifier: string;
  /** Whether files can be in directories. */
  readonly hasDirectories: boolean;

  /** @throws OutcomeUnknownError if it is unknown whether the code has run. */
  execute(order: ExecutionOrder): Promise<ExecutionAnswer>;
  /** @param cursor - `next` of the previous page. */
  listDirectory(directory: string, cursor: RemotePage["next"], signal: AbortSignal | undefined): Promise<RemotePage>;
  readFile(path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** @returns the number of bytes that the service stored, if it reports that. */
  writeFile(path: string, content: FileContent, signal?: AbortSignal): Promise<number | undefined>;
  removeFile(path: string, signal?: AbortSignal): Promise<void>;
}

/** How most messages of `OutcomeUnknownError` begin. */
export const answerLost = "The answer to a block was lost";

/** The code was sent, and its fate is unknown; the message says why. */
export class OutcomeUnknownError extends Error {}
