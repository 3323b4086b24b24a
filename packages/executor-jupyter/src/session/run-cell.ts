import { within } from "@fenced/core/abort";
import { blockSource, type BlockOutcome, type BlockRun, type Sink, timeIsUp, writeAll } from "@fenced/executor-kit";
import type { BlockDisplays } from "@fenced/executor-kit/displays";
import type { KernelRequest } from "../kernel/kernel-request.ts";
import { expressionValue } from "../python/python-helper.ts";
import { CellOutput } from "./cell-output.ts";
import type { LiveKernel } from "./kernel-place.ts";

/** What `runCell` needs in addition to the block. */
export interface CellSettings {
  readonly live: LiveKernel;
  readonly displays: BlockDisplays;
  readonly interruptGraceMs: number;
  /** Gives the kernel up. @param answers - it may still answer. */
  readonly discard: (answers: boolean) => Promise<void>;
}

/**
 * Runs a block as a cell of the kernel, or in a shell that the kernel starts.
 *
 * @throws KernelLostError if the kernel, or the connection to it, is lost.
 */
export async function runCell(
  run: BlockRun,
  sink: Sink,
  { live, displays, interruptGraceMs, discard }: CellSettings,
): Promise<BlockOutcome> {
  const { signal } = sink;
  const request = startCell(run, live);
  const output = new CellOutput(displays);
  const input = linesOf(run.stdin ?? "");
  const endOfInput = live.kernel.language === "python" ? pythonEndOfInput : "";
  try {
    for (;;) {
      const message = await request.next(signal);
      if (!message) break;
      await writeAll(sink, await output.events(message));
      if (message.header.msg_type === "input_request") live.kernel.reply(input.next().value ?? endOfInput);
    }
    // A slow reader may get the last output only when the block's time is up.
    const ended = request.finishedAt !== undefined && (!signal.aborted || signal.reason === timeIsUp);
    if (signal.aborted) {
      for (const message of request.takeAll()) await writeAll(sink, await output.events(message));
    }
    if (signal.aborted && !ended) {
      await writeAll(sink, output.end());
      await endCell(request, { live, interruptGraceMs, discard });
      return { exitCode: 1, truncated: output.truncated || request.incomplete };
    }
    const reply = await request.finished;
    await writeAll(sink, [...output.end(), ...output.reply(reply)]);
    return {
      exitCode: output.exitCode || shellExit(reply),
      truncated: output.truncated || request.incomplete,
      ...(request.finishedAt !== undefined && { endedAt: request.finishedAt }),
    };
  } finally {
    request.dropOutputs();
  }
}

function startCell({ language, code, stdin, setup }: BlockRun, { kernel, helper }: LiveKernel): KernelRequest {
  if (helper && language !== kernel.language) return helper.shell(language, blockSource(language, code), stdin);
  // A Python kernel that gets no input ends its program, as a closed input does; other kernels may not.
  const asks = kernel.language === "python" || stdin !== undefined;
  const source = code.replaceAll("\r\n", "\n");
  return kernel.execute({ code: source, input: asks, visible: true, counted: setup !== true });
}

function shellExit(reply: Readonly<Record<string, unknown>>): number {
  const exit = expressionValue(reply, "exit");
  return typeof exit === "number" ? exit : 0;
}

/**
 * Ends a running cell and everything that it started. Variables, and processes of earlier cells, survive unless the
 * code ignores the interrupt, in which case the kernel is discarded.
 */
async function endCell(
  request: KernelRequest,
  { live, interruptGraceMs, discard }: Omit<CellSettings, "displays">,
): Promise<void> {
  request.dropOutputs();
  const how = await interrupt(request, live, interruptGraceMs);
  if (how === "ended" && !live.kernel.end) {
    if (!live.helper || (await live.helper.demand("kill")) === true) return;
  }
  await discard(how !== "stuck");
}

/** @returns `stuck` if the cell keeps running and the kernel does not even answer on its control channel. */
async function interrupt(
  request: KernelRequest,
  { kernel, helper }: LiveKernel,
  graceMs: number,
): Promise<"ended" | "goes on" | "stuck"> {
  const ended = request.finished.then(
    () => true,
    () => true,
  );
  // An interrupt that arrives before the code runs has no effect.
  await within(graceMs, request.begun);
  let answers = true;
  for (let attempt = 0; attempt < 2 && !kernel.end; attempt += 1) {
    // null: the helper did it. The server's own interrupt would also hit processes of earlier cells.
    const answer: unknown = helper && answers ? await helper.demand("interrupt", {}, graceMs) : undefined;
    answers = answer !== undefined;
    if (answer !== null) {
      const interrupted = kernel.interrupt().catch(() => {});
      await within(graceMs / 2, interrupted);
    }
    if ((await within(graceMs / 2, ended)) === true) return "ended";
  }
  if (kernel.end) return "ended";
  return answers ? "goes on" : "stuck";
}

/** What `input()` in a Python kernel treats as the end of its input. Other kernels have no equivalent and get an empty line. */
const pythonEndOfInput = "\u0004";

/** A block's standard input, line by line, without the line breaks. */
function* linesOf(text: string): Generator<string, undefined, void> {
  for (let next = 0; next < text.length;) {
    const end = text.indexOf("\n", next);
    const line = text.slice(next, end === -1 ? undefined : end);
    next = end === -1 ? text.length : end + 1;
    yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}
