import { timeIsUp } from "@fenced/executor-kit";
import type { RemoteContent } from "../api/session-api.ts";

/** Milliseconds for which a file may still be opened after the block's time is up. */
const patienceMs = 10_000;

/**
 * Opens a file of a block that has ended. That time is up does not end the reading, which may wait for a slow consumer;
 * but what the code has put in the file's place may never answer, so it must begin soon.
 *
 * @param signal - the block's; for other reasons it ends the reading at once.
 */
export async function openLate(
  open: (signal: AbortSignal) => Promise<RemoteContent>,
  signal: AbortSignal,
): Promise<RemoteContent> {
  const controller = new AbortController();
  let isOpen = false;
  let timer: NodeJS.Timeout | undefined;
  const follow = (): void => {
    if (signal.reason !== timeIsUp) controller.abort(signal.reason);
    else if (!isOpen) timer = setTimeout(() => controller.abort(timeIsUp), patienceMs);
  };
  signal.addEventListener("abort", follow, { once: true });
  if (signal.aborted) follow();
  try {
    return await open(controller.signal);
  } finally {
    isOpen = true;
    clearTimeout(timer);
  }
}
