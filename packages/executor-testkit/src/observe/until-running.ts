import type { CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { FollowedStream } from "./follow-stream.ts";
import { workspaceHeartbeat } from "./heartbeat.ts";

/**
 * Waits until a block that prints `started` and then beats in `file` has got that far. A remote executor may hold the
 * output back until the block has ended, so there the file tells; elsewhere files may not be read during a run.
 */
export async function untilRunning(
  kit: CaseContext,
  executor: CodeExecutor,
  followed: FollowedStream,
  file: string,
): Promise<void> {
  if (kit.capabilities.isolation === "remote") {
    const heartbeat = workspaceHeartbeat(executor, file);
    await kit.eventually(`the block beats in ${file}`, () => heartbeat.count());
  } else {
    await kit.within("the block's first output", followed.seen("started\n"));
    // From "started" to the first beat is a moment, but a test that ends the program in it has seen nothing.
    await new Promise((resolve) => {
      setTimeout(resolve, 500);
    });
  }
}
