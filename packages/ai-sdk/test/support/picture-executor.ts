import type { ComponentModel, ExecutorCapabilities, WorkspaceFiles } from "@fenced/core";
import {
  BaseCodeExecutor,
  DirectoryFiles,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
} from "@fenced/executor-kit";

/** One transparent pixel. */
export const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** An executor with rich output, in this process: each line of a block shows the picture once. */
export class PictureExecutor extends BaseCodeExecutor {
  readonly capabilities: ExecutorCapabilities = {
    languages: ["draw"],
    stateful: true,
    displays: true,
    functions: [],
    stdin: false,
    isolation: "none",
  };

  dumpComponent(): ComponentModel {
    return { provider: "test:PictureExecutor", componentType: "code_executor", version: 1, config: {} };
  }

  protected openSession(): Promise<void> {
    return Promise.resolve();
  }

  protected closeSession(): Promise<void> {
    return Promise.resolve();
  }

  protected resetSession(): Promise<void> {
    return Promise.resolve();
  }

  protected sessionFiles(): WorkspaceFiles {
    return new DirectoryFiles(".");
  }

  protected async *runBlock({ code }: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    for (const line of code.split("\n")) {
      yield { type: "stdout", data: `${line}\n` };
      yield { type: "display", display: { data: { "image/png": pixel, "text/plain": line }, files: [] } };
    }
    return Promise.resolve({ exitCode: 0 });
  }
}
