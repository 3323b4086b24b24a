import type { FileContent } from "@fenced/executor-kit";

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

/** A page of a directory's list. */
export interface RemotePage {
  readonly entries: readonly RemoteEntry[];
  /** What to ask for the next page with; `undefined`: this is the last one. */
  readonly next: Readonly<Record<string, string>> | undefined;
}

/** A file that is being received. */
export interface RemoteContent {
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * One generation of the service's calls, for one session. Paths are relative to `/mnt/data`, normalised; `.` is the root.
 */
export interface SessionApi {
  readonly identifier: string;
  /** Whether files can be in directories. */
  readonly hasDirectories: boolean;

  /** @throws OutcomeUnknownError if it may or may not have run. */
  execute(order: ExecutionOrder): Promise<ExecutionAnswer>;
  /** @param cursor - `next` of the page before. */
  listDirectory(directory: string, cursor: RemotePage["next"], signal: AbortSignal | undefined): Promise<RemotePage>;
  readFile(path: string, signal?: AbortSignal): Promise<RemoteContent>;
  /** @returns the bytes that the service says it stored, if it says so. */
  writeFile(path: string, content: FileContent, signal?: AbortSignal): Promise<number | undefined>;
  removeFile(path: string, signal?: AbortSignal): Promise<void>;
}

/** How most messages of `OutcomeUnknownError` begin. */
export const answerLost = "The answer to a block was lost";

/** The code was sent, and nothing tells what became of it; the message says why. */
export class OutcomeUnknownError extends Error {}
