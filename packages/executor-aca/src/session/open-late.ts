import { timeIsUp } from "@fenced/executor-kit";

/** Milliseconds for opening a file after the block's time is up. */
const patienceMs = 10_000;

/**
 * Opens a file of a block that has ended. The block's time limit does not end the reading, which may wait for a slow
 * consumer. But the code may have put something in the file's place that never answers, so the reading must begin
 * soon.
 *
 * @param signal - the block's; aborted for other reasons, it ends the reading at once.
 */
export async function openLate(
  open: (signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
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
