import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { onTestFinished } from "vitest";
import { ExecutorSessions, type ExecutorSessionsOptions } from "../../src/index.ts";
import { sh } from "./runs.ts";

/** Runs until the file `go` exists. */
export const untilGo = sh("echo ready; until [ -e go ]; do sleep 0.02; done");
export const forever = sh("echo $$; sleep 600");

/** Sessions of local executors, all ended with the test. */
export function localSessions(options: Partial<ExecutorSessionsOptions> = {}): ExecutorSessions {
  const sessions = new ExecutorSessions({ create: () => new LocalCommandLineCodeExecutor(), ...options });
  onTestFinished(() => sessions.drain({ graceMs: 0 }));
  return sessions;
}

export async function workspaceOf(sessions: ExecutorSessions, key: string): Promise<string> {
  return (await sessions.run(key, sh("pwd"))).output.trim();
}
