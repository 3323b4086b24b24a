import type { BlockEvent, BlockOutcome, ProgramRun } from "@fenced/executor-kit";
import type { ProgramEnd } from "@fenced/executor-kit/supervisor";
import { memorySentence } from "../container/container-options.ts";
import type { UsedContainer } from "../container/leave-container.ts";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";

/** Runs a program beside blocks. A work directory that this host cannot see is copied back at its end, as after a block. */
export async function* runProgram(
  { container, workspace }: UsedContainer,
  program: ProgramRun,
  { options }: { readonly options: DockerExecutorOptions },
): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  let problem: string | undefined;
  let end: ProgramEnd;
  try {
    end = yield* container.runner.run(program);
  } finally {
    if (!container.lost) problem = await workspace.settle();
  }
  if (end.outOfMemory) yield { type: "stderr", data: memorySentence(options) };
  if (problem !== undefined) yield { type: "stderr", data: problem };
  return { exitCode: end.exitCode };
}
