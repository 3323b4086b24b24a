import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import type { SandboxClientCreateArgs } from "@openai/agents-core/sandbox";
import { onTestFinished } from "vitest";
import type { ExecutorSandboxesOptions } from "../../src/index.ts";
import {
  fencedSandboxClient,
  type FencedSandboxClient,
  type FencedSandboxSession,
} from "../../src/openai-agents/index.ts";

/** A client whose sandboxes are ended after the test; by default, processes of this host. */
export function newClient(options: Partial<ExecutorSandboxesOptions> = {}): FencedSandboxClient {
  const client = fencedSandboxClient({
    createExecutor: ({ restore }) => new LocalCommandLineCodeExecutor(restore ? { restore } : {}),
    ...options,
  });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return client;
}

export function newSession(
  args: SandboxClientCreateArgs = {},
  options: Partial<ExecutorSandboxesOptions> = {},
): Promise<FencedSandboxSession> {
  return newClient(options).create(args);
}

/** A directory that is removed after the test. */
export async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-agents-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A picture of one pixel. */
export const png: Buffer = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
