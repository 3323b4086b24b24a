import type { SandboxCapabilities, SandboxProvider } from "@tanstack/ai-sandbox";
import type { ExecutorSandboxesOptions } from "../executor-sandboxes-options.ts";
import { ExecutorSandboxes } from "../executor-sandboxes.ts";
import { SandboxHandleOver } from "./sandbox-handle.ts";

/** A provider for `defineSandbox` of TanStack AI. */
export type FencedProvider = SandboxProvider & AsyncDisposable;

/**
 * Makes Fenced's executors the sandboxes of TanStack AI. A sandbox lives until TanStack destroys it, or you dispose of the
 * provider at the end of your program.
 *
 * TanStack's policy is about what an agent may ask for; what programs can reach is up to the executor.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * await using provider = fencedProvider({ createExecutor: () => new DockerCommandLineCodeExecutor() });
 * const sandbox = defineSandbox({ id: "coder", provider });
 */
export function fencedProvider(options: ExecutorSandboxesOptions): FencedProvider {
  const sandboxes = new ExecutorSandboxes(options, "fencedProvider");
  const flags = {
    fs: true,
    exec: true,
    env: true,
    ports: true,
    backgroundProcesses: true,
    writableStdin: true,
    // Newer versions ask for it: a kill takes everything that a program has started along.
    killableProcesses: true,
    snapshots: sandboxes.hasSnapshots,
    networkPolicy: false,
    durableFilesystem: sandboxes.areDurable,
    fork: sandboxes.hasSnapshots,
  };
  const capabilities: SandboxCapabilities = flags;
  const parts = { sandboxes, capabilities };
  return {
    name: "fenced",
    capabilities: () => capabilities,
    create: async ({ id, env, signal }) => {
      const sandbox = await sandboxes.create(id, { signal });
      sandbox.setEnv(env ?? {});
      return new SandboxHandleOver(sandbox, parts);
    },
    resume: async ({ id, signal }) => {
      const sandbox = await sandboxes.find(id, signal);
      return sandbox ? new SandboxHandleOver(sandbox, parts) : null;
    },
    ...(sandboxes.hasSnapshots && {
      restoreSnapshot: async ({ snapshotId, env, signal }) => {
        const sandbox = await sandboxes.create(undefined, { snapshot: snapshotId, signal });
        sandbox.setEnv(env ?? {});
        return new SandboxHandleOver(sandbox, parts);
      },
    }),
    destroy: ({ id }) => sandboxes.end(id),
    [Symbol.asyncDispose]: () => sandboxes[Symbol.asyncDispose](),
  };
}
