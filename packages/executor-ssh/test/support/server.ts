import { BackendUnavailableError, type CodeResult } from "@fenced/core";
import { SshCommandLineCodeExecutor, type SshExecutorOptions } from "@fenced/executor-ssh";
import { backend } from "@fenced/test-support";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { afterAll, expect, onTestFinished } from "vitest";

/** The server of the test file that imports this, which ends with it; `undefined` where there is no ssh. */
export const server: SshServer | undefined = backend("ssh").available ? await SshServer.start() : undefined;

afterAll(async () => server?.[Symbol.asyncDispose]());

/** An executor on the server, stopped when the test ends. */
export function create(options: Partial<SshExecutorOptions> = {}): SshCommandLineCodeExecutor {
  const executor = new SshCommandLineCodeExecutor({ host, configFile: server?.configFile ?? "", ...options });
  onTestFinished(() => executor.stop());
  return executor;
}

/** The error of a start that must fail. */
export async function failure(options: Partial<SshExecutorOptions>): Promise<BackendUnavailableError> {
  const error: unknown = await create(options)
    .start()
    .then(
      () => "it started",
      (reason: unknown) => reason,
    );
  if (BackendUnavailableError.isInstance(error)) return error;
  throw new Error(`not a BackendUnavailableError: ${String(error)}`);
}

/** Runs one bash block. */
export function bash(
  executor: SshCommandLineCodeExecutor,
  code: string,
  options: Parameters<SshCommandLineCodeExecutor["executeCodeBlocks"]>[1] = {},
): Promise<CodeResult> {
  return executor.executeCodeBlocks([{ language: "bash", code }], options);
}

/** Waits until nothing is left on the other side. */
export async function gone(limitMs = 60_000): Promise<void> {
  await expect.poll(async () => (server ? server.remains() : []), { timeout: limitMs }).toEqual([]);
}
