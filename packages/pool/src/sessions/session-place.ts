import { BackendUnavailableError, type CodeExecutor, connectExecutor, InvalidInputError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { SessionNote } from "../directory/session-directory.ts";
import type { SessionLease } from "../directory/session-lease.ts";
import type { ExecutorSessionsOptions } from "./executor-sessions-options.ts";

/** Whether an executor's session outlives this process, and can be left to another one. */
export function canBeLeft(executor: CodeExecutor): boolean {
  return executor.capabilities.keepAlive === true && executor.detach !== undefined;
}

/** Connects to the place of a session. @returns `undefined` if it has none, or its place is gone. */
export async function connectTo(
  key: string,
  { handle }: SessionNote,
  options: Pick<ExecutorSessionsOptions, "connect">,
  signal: AbortSignal | undefined,
): Promise<CodeExecutor | undefined> {
  if (handle === undefined) return undefined;
  const { connect = (_key, given, wanted) => connectExecutor(given, { takeOver: true, signal: wanted }) } = options;
  try {
    // The directory has said that nobody else has it: a process that is connected comes too late.
    return await connect(key, handle, signal);
  } catch (error) {
    // A connection that was given up says nothing about the place.
    if (BackendUnavailableError.isInstance(error) && signal?.aborted !== true) return undefined;
    throw error;
  }
}

/** Lets the directory know how to connect to the place, if that has changed. */
export async function noteHandle(executor: CodeExecutor, lease: SessionLease): Promise<void> {
  if (!canBeLeft(executor)) return;
  const { handle } = executor;
  if (JSON.stringify(handle) !== JSON.stringify(lease.note.handle)) await lease.update({ handle });
}

/** Leaves the place to another process. @returns whether it could be left. */
export async function leave(
  executor: CodeExecutor,
  { limitMs, onError }: { readonly limitMs: number; readonly onError: (error: unknown) => void },
): Promise<boolean> {
  try {
    const leaving = executor.detach?.().then(() => true);
    if (leaving && (await within(limitMs, leaving)) === true) return true;
    onError(
      new BackendUnavailableError(`A session could not be left within ${limitMs} ms`, {
        remedy: "Check its backend, or raise stopTimeoutMs.",
      }),
    );
  } catch (error) {
    onError(error);
  }
  return false;
}

/** The error for executors whose sessions end with their process. */
export function cannotBeLeft(): InvalidInputError {
  return new InvalidInputError('`onDrain: "detach"` needs executors whose `capabilities.keepAlive` is true', {
    remedy: "Set `keepAliveMs` on the executors that `create` returns, not those of a pool, or use checkpoints.",
    option: "onDrain",
  });
}
