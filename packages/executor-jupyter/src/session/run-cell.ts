import { blockSource, type BlockEvent, type BlockOutcome, type BlockRun } from "@fenced/executor-kit";
import { isInputRequestMsg } from "@jupyterlab/services/lib/kernel/messages.js";
import type { KernelRequest } from "../kernel/kernel-request.ts";
import { expressionValue } from "../python/python-helper.ts";
import { CellOutput } from "./cell-output.ts";
import { InputLines } from "./input-lines.ts";
import { interruptCell } from "./interrupt-cell.ts";
import type { JupyterSession } from "./jupyter-session.ts";
import type { LiveKernel } from "./live-kernel.ts";

/** What running a cell needs besides the block. */
export interface CellSettings {
  readonly session: JupyterSession;
  readonly live: LiveKernel;
  readonly interruptGraceMs: number;
}

/**
 * Runs a block as a cell of the kernel, or in a shell that the kernel starts.
 *
 * @throws KernelLostError if the kernel, or the way to it, is lost.
 */
export async function* runCell(
  run: BlockRun,
  { session, live, interruptGraceMs }: CellSettings,
): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  const request = startCell(run, live);
  const output = new CellOutput(session.displays);
  const input = new InputLines(run.stdin, live.kernel.language);
  try {
    for (;;) {
      const message = await request.next(run.signal);
      if (!message) break;
      yield* await output.events(message);
      if (isInputRequestMsg(message)) live.kernel.reply(input.take());
    }
    if (run.signal.aborted) {
      for (const message of request.takeAll()) yield* await output.events(message);
      await interruptCell(request, session, live, interruptGraceMs);
      return { exitCode: 1, truncated: output.truncated };
    }
    const reply = await request.finished;
    yield* output.fail(reply);
    return { exitCode: output.exitCode || shellExit(reply), truncated: output.truncated };
  } finally {
    request.dropOutputs();
  }
}

function startCell({ language, code, stdin }: BlockRun, { kernel, python }: LiveKernel): KernelRequest {
  if (python && language !== kernel.language) return python.helper.shell(language, blockSource(language, code), stdin);
  // A Python kernel that asks for input and gets none ends its program as a closed input does; others may not know how.
  const asks = kernel.language === "python" || stdin !== undefined;
  return kernel.execute({ code: code.replaceAll("\r\n", "\n"), input: asks, visible: true });
}

function shellExit(reply: Readonly<Record<string, unknown>>): number {
  const exit = expressionValue(reply, "exit");
  return typeof exit === "number" ? exit : 0;
}
