import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { directoryStore } from "@fenced/checkpoints";
import type { CheckpointStore } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { onTestFinished } from "vitest";
import type { ExecutorSessions, ExecutorSessionsOptions } from "../../src/index.ts";
import { localSessions } from "./local-sessions.ts";

/** A store of checkpoints, removed with the test. */
export async function temporaryStore(): Promise<CheckpointStore> {
  const path = await mkdtemp(join(tmpdir(), "fenced-test-store-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return directoryStore(path);
}

/** Sessions of local executors that can move, as one of several processes has them. */
export function movingSessions(
  options: Partial<ExecutorSessionsOptions> & Required<Pick<ExecutorSessionsOptions, "checkpoints">>,
): ExecutorSessions {
  return localSessions({
    create: (_key, _signal, restore) => new LocalCommandLineCodeExecutor({ restore }),
    ...options,
  });
}
