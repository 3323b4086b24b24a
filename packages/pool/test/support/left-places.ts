import { type CodeExecutor, connectExecutor, type SessionHandle } from "@fenced/core";
import * as local from "@fenced/executor-local";
import type { ExecutorSessions, ExecutorSessionsOptions } from "../../src/index.ts";
import { localSessions } from "./local-sessions.ts";

/** Connects to the place of one of `leftSessions`. */
export function connectToLeft(handle: SessionHandle, signal?: AbortSignal): Promise<CodeExecutor> {
  const options = { takeOver: true, importModule: async () => local };
  return connectExecutor(handle, signal ? { ...options, signal } : options);
}

/** Sessions that are left to the next process, in places on this machine. */
export function leftSessions(options: Partial<ExecutorSessionsOptions>): ExecutorSessions {
  return localSessions({
    create: () => new local.LocalCommandLineCodeExecutor({ warm: {}, keepAliveMs: 60_000 }),
    connect: (_key, handle, signal) => connectToLeft(handle, signal),
    onDrain: "detach",
    ...options,
  });
}
