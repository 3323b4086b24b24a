import type { ComponentModel, ExecutorCapabilities } from "@fenced/core";
import {
  BaseCodeExecutor,
  DirectoryFiles,
  type Backend,
  type BlockOutcome,
  type BlockRun,
  type Sink,
} from "@fenced/executor-kit";

/** One transparent pixel. */
export const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** An executor with rich output, in this process: each line of a block shows the picture once. */
export class PictureExecutor extends BaseCodeExecutor {
  protected readonly offered: ExecutorCapabilities = {
    languages: ["draw"],
    stateful: true,
    displays: true,
    functions: [],
    hostFunctions: [],
    stdin: false,
    isolation: "none",
  };

  dumpComponent(): ComponentModel {
    return { provider: "test:PictureExecutor", componentType: "code_executor", version: 1, config: {} };
  }

  protected openBackend(): Backend {
    const done = () => Promise.resolve();
    const place = { facts: {}, files: new DirectoryFiles("."), run: draw, reset: done, end: done };
    return { open: () => Promise.resolve(place), close: done };
  }
}

async function draw({ code }: BlockRun, sink: Sink): Promise<BlockOutcome> {
  for (const line of code.split("\n")) {
    await sink.write({ type: "stdout", data: `${line}\n` });
    await sink.write({
      type: "display",
      display: { data: { "image/png": pixel, "text/plain": line }, files: [] },
    });
  }
  return { exitCode: 0 };
}
