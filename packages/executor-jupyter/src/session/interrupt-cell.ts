import type { KernelRequest } from "../kernel/kernel-request.ts";
import { within } from "../within.ts";
import type { JupyterSession } from "./jupyter-session.ts";
import type { LiveKernel } from "./live-kernel.ts";

/**
 * Ends a cell that runs, and what it has started. What earlier cells left running, and variables, stay, unless the code
 * does not let itself be interrupted: then the kernel has to go.
 */
export async function interruptCell(
  request: KernelRequest,
  session: JupyterSession,
  live: LiveKernel,
  graceMs: number,
): Promise<void> {
  request.dropOutputs();
  const ended = await interrupt(request, live, graceMs);
  const helper = live.python?.helper;
  const clean = ended && !live.kernel.end && (helper === undefined || (await helper.demand("kill")) === true);
  if (!clean) await session.discard(live);
}

/** @returns whether the cell has ended. */
async function interrupt(request: KernelRequest, live: LiveKernel, graceMs: number): Promise<boolean> {
  const ended = request.finished.then(
    () => true,
    () => true,
  );
  // An interrupt that comes before the code runs hits nothing.
  await within(graceMs, request.begun);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    if (live.kernel.end) return true;
    await sendInterrupt(live);
    if ((await within(graceMs / 2, ended)) === true) return true;
  }
  return false;
}

async function sendInterrupt({ kernel, python }: LiveKernel): Promise<void> {
  // null: the helper did it. The server's own interrupt would also hit what earlier cells left running.
  if (python && (await python.helper.demand("interrupt")) === null) return;
  await kernel.interrupt().catch(() => {});
}
