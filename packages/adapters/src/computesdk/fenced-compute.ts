import { posix } from "node:path";
import {
  type CommandResult,
  defineProvider,
  type ListSnapshotsOptions,
  type Provider,
  type RunCommandOptions,
  type SandboxMethods,
  type SnapshotMethods,
} from "@computesdk/provider";
import { InvalidInputError } from "@fenced/core";
import type { ExecutorSandbox, TextListener } from "../executor-sandbox.ts";
import type { ExecutorSandboxesOptions } from "../executor-sandboxes-options.ts";
import { ExecutorSandboxes } from "../executor-sandboxes.ts";

/** A snapshot, as ComputeSDK describes one. */
interface ComputeSnapshot {
  readonly id: string;
  readonly provider: string;
  readonly createdAt: Date;
}

/** A provider for `compute` of ComputeSDK. */
export type FencedCompute = Provider<ExecutorSandbox, unknown, ComputeSnapshot> & AsyncDisposable;

const providerName = "fenced";

/**
 * Makes Fenced's executors the sandboxes of ComputeSDK. A sandbox lives until it is destroyed, its `timeout` is over, or you
 * dispose of the provider at the end of your program. Images and templates are up to `createExecutor`, which gets them in
 * `given`.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * await using provider = fencedCompute({ createExecutor: () => new DockerCommandLineCodeExecutor() });
 * const sandbox = await provider.sandbox.create();
 * console.log((await sandbox.runCommand("python3 -V")).stdout);
 */
export function fencedCompute(options: ExecutorSandboxesOptions): FencedCompute {
  const sandboxes = new ExecutorSandboxes(options, "fencedCompute");
  const methods = { sandbox: sandboxMethods, ...(sandboxes.hasSnapshots && { snapshot: snapshotMethods }) };
  const define = defineProvider<ExecutorSandbox, ExecutorSandboxes, unknown, ComputeSnapshot>({
    name: providerName,
    methods,
  });
  return Object.assign(define(sandboxes), { [Symbol.asyncDispose]: () => sandboxes[Symbol.asyncDispose]() });
}

const sandboxMethods: SandboxMethods<ExecutorSandbox, ExecutorSandboxes> = {
  create: async (sandboxes, { snapshotId, envs = {}, timeout, signal, ...given } = {}) => {
    const sandbox = await sandboxes.create(undefined, { snapshot: snapshotId, lifetimeMs: timeout, given, signal });
    sandbox.setEnv(envs);
    return withId(sandbox);
  },
  getById: async (sandboxes, id) => {
    const sandbox = await sandboxes.find(id);
    return sandbox ? withId(sandbox) : null;
  },
  list: async (sandboxes) => sandboxes.list().map((sandbox) => withId(sandbox)),
  destroy: (sandboxes, id) => sandboxes.end(id),
  runCommand: (sandbox, command, options = {}) => runCommand(sandbox, command, options),
  streamCommand: (sandbox, command, { onStdout: stdout, onStderr: stderr, ...options }) =>
    runCommand(sandbox, command, options, { ...(stdout && { stdout }), ...(stderr && { stderr }) }),
  getInfo: async ({ id, createdAt, lifetimeMs = 0 }) => ({
    id,
    provider: providerName,
    status: "running",
    createdAt,
    timeout: lifetimeMs,
  }),
  getUrl: (sandbox, { port, protocol }) => sandbox.url(port, protocol),
  filesystem: {
    readFile: (sandbox, path) => sandbox.readText(path),
    writeFile: (sandbox, path, content) => sandbox.executor.files.write(sandbox.fileAt(path), content),
    mkdir: (sandbox, path) => sandbox.executor.files.makeDirectory(sandbox.fileAt(path)),
    readdir: async (sandbox, path) => {
      const listing = { recursive: false, directories: true } as const;
      const entries = await sandbox.executor.files.list(sandbox.fileAt(path), listing);
      return entries.map((entry) => ({ name: posix.basename(entry.path), type: entry.type, size: entry.size }));
    },
    exists: (sandbox, path) => sandbox.exists(path),
    remove: (sandbox, path) => sandbox.remove(path),
  },
};

const snapshotMethods: SnapshotMethods<ComputeSnapshot, ExecutorSandboxes> = {
  create: async (sandboxes, sandboxId) => {
    const sandbox = await sandboxes.find(sandboxId);
    if (!sandbox) {
      throw new InvalidInputError(`There is no sandbox ${JSON.stringify(sandboxId)}`, {
        remedy: "Use the `sandboxId` of one that runs.",
      });
    }
    return { id: await sandboxes.snapshot(sandbox), provider: providerName, createdAt: new Date() };
  },
  list: async (sandboxes, { sandboxId, limit }: ListSnapshotsOptions = {}) => {
    if (sandboxId !== undefined) {
      throw new InvalidInputError("Snapshots do not know their sandbox", { remedy: "List all of them." });
    }
    const infos = await sandboxes.store.list();
    return infos.slice(0, limit).map(({ id, createdAt }) => ({ id, provider: providerName, createdAt }));
  },
  delete: (sandboxes, id) => sandboxes.store.delete(id),
};

function withId(sandbox: ExecutorSandbox): { sandbox: ExecutorSandbox; sandboxId: string } {
  return { sandbox, sandboxId: sandbox.id };
}

async function runCommand(
  sandbox: ExecutorSandbox,
  command: string,
  { cwd, env, timeout: timeoutMs, background = false }: RunCommandOptions,
  listeners: { readonly stdout?: TextListener; readonly stderr?: TextListener } = {},
): Promise<CommandResult> {
  const startedAt = performance.now();
  const asked = { command, cwd, env, timeoutMs };
  const durationMs = (): number => Math.round(performance.now() - startedAt);
  if (!background) return { ...(await sandbox.run(asked, listeners)), durationMs: durationMs() };
  await sandbox.runInBackground(asked);
  return { stdout: "", stderr: "", exitCode: 0, durationMs: durationMs() };
}
