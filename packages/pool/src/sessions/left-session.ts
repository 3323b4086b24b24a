import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { afterMs, untilAborted } from "@fenced/core/abort";
import type { SessionLease } from "../directory/session-lease.ts";
import type { ExecutorSessionsOptions } from "./executor-sessions-options.ts";
import { connectTo, leave } from "./session-place.ts";

/**
 * Ends what the last process of a session has left: its place, its record and its checkpoint. The lease is over then.
 *
 * @param onError - receives errors that no caller waits for.
 * @throws BackendUnavailableError if the directory has not recorded it, or its place cannot be reached.
 * @throws what the store does if it cannot delete the checkpoint, which no session knows any more.
 */
export async function endLeft(
  lease: SessionLease,
  options: ExecutorSessionsOptions,
  onError: (error: unknown) => void,
): Promise<void> {
  let isEnded = false;
  try {
    await endPlace(lease, options, onError);
    isEnded = true;
  } finally {
    // Somebody can try again.
    if (!isEnded) await lease.release(lease.unopened);
  }
  if (!(await lease.release(undefined))) throw notRecorded(lease.over);
  const { checkpoint } = lease.note;
  // Last: a process that has the key meanwhile must not look for a checkpoint that is gone.
  if (checkpoint !== undefined) await options.checkpoints?.delete(checkpoint);
}

async function endPlace(
  lease: SessionLease,
  options: ExecutorSessionsOptions,
  onError: (error: unknown) => void,
): Promise<void> {
  const { startTimeoutMs = 120_000, stopTimeoutMs: limitMs = 60_000 } = options;
  const leaveIt = async (left: CodeExecutor | undefined): Promise<unknown> => left && leave(left, { limitMs, onError });
  const late = new AbortController();
  const cancel = afterMs(startTimeoutMs, () => late.abort(connectedLate(startTimeoutMs)));
  try {
    assertHeld(lease);
    const connecting = connectTo(lease.hold.key, lease.note, options, late.signal);
    const left = await untilAborted(connecting, late.signal).catch((error: unknown) => {
      // It may come even so.
      connecting.then(leaveIt).catch(() => {});
      throw error;
    });
    try {
      assertHeld(lease);
    } catch (error) {
      // It may be another process's by now.
      await leaveIt(left);
      throw error;
    }
    await left?.[Symbol.asyncDispose]();
  } finally {
    cancel();
  }
}

/** @throws BackendUnavailableError if the lease is over. */
function assertHeld({ over }: SessionLease): void {
  if (over !== undefined) throw notRecorded(over);
}

/** The error for the end of a session that the directory did not record. */
function notRecorded(reason = "The directory did not record that it is gone."): BackendUnavailableError {
  return new BackendUnavailableError(`The session could not be ended: ${reason}`, {
    remedy: "Call end() again.",
  });
}

function connectedLate(milliseconds: number): BackendUnavailableError {
  return new BackendUnavailableError(`The place of the session was not reached within ${milliseconds} ms`, {
    remedy: "Check its backend and what `connect` does, or raise startTimeoutMs.",
  });
}
