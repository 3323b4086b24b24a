import { randomUUID } from "node:crypto";
import { InvalidInputError, processesOf, type CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  checkOptions,
  codeExecutorOption,
  optionsSchema,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { SandboxOverProcesses } from "../sandbox/sandbox-session.ts";
import type { ExecutorSandboxSession } from "../sandbox/sandbox-types.ts";
import type {
  HarnessNetworkPolicy,
  HarnessPort,
  HarnessSandboxProvider,
  HarnessSandboxSession,
  HarnessSessionRequest,
} from "./harness-types.ts";

/** The session that an executor is created for. */
export interface HarnessExecutorRequest {
  /** Identifies the session, even across processes: name the container or the work directory after it. */
  readonly sessionId: string;
  /** True if the session existed before; its files should still be there. */
  readonly resumed: boolean;
  /** Hosts that programs may connect to now. Pass it as `network: { allow }`, so that `setNetworkPolicy` takes effect. */
  readonly allow: () => readonly string[];
}

/** Options of `harnessSandbox`. */
export interface HarnessSandboxOptions {
  /** Creates an executor with `processes` for a session. The session starts and stops it. */
  readonly createExecutor: (request: HarnessExecutorRequest) => CodeExecutor | Promise<CodeExecutor>;
  /** Deletes what a session left behind when it is destroyed, such as its work directory. Default: nothing. */
  readonly destroy?: ((sessionId: string) => void | Promise<void>) | undefined;
  /** Hosts that programs may connect to until `setNetworkPolicy` is called. Default: none. */
  readonly allow?: readonly string[] | undefined;
}

const harnessOptions: z.ZodType<HarnessSandboxOptions> = optionsSchema({
  createExecutor: callbackOption<HarnessSandboxOptions["createExecutor"]>(),
  destroy: callbackOption<NonNullable<HarnessSandboxOptions["destroy"]>>().exactOptional(),
  allow: z.array(z.string()).exactOptional(),
} satisfies OptionSchemas<HarnessSandboxOptions>);
const created = z.object({ executor: codeExecutorOption });

/** Accepts every id that a harness generates; no id can leave a directory or act as a command-line option. */
const sessionIdPattern = /^[A-Za-z0-9][\w.-]{0,127}$/;

/**
 * Provides sandboxes for the AI SDK's `HarnessAgent` with executors that you create, such as containers. Each session
 * has its own executor. `resumeSession` finds what the executor keeps: give it a work directory or a container named
 * after the session's id.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * const sandbox = harnessSandbox({
 *   createExecutor: ({ sessionId, allow }) =>
 *     new DockerCommandLineCodeExecutor({ workDir: `sessions/${sessionId}`, network: { allow }, dockerPorts: [4000] }),
 * });
 * const agent = new HarnessAgent({ harness, sandbox });
 */
export function harnessSandbox(options: HarnessSandboxOptions): HarnessSandboxProvider {
  const checked = checkOptions(harnessOptions, options, "harnessSandbox");
  return {
    specificationVersion: "harness-sandbox-v1",
    providerId: "fenced",
    createSession: async ({ sessionId = randomUUID(), abortSignal, onFirstCreate }: HarnessSessionRequest = {}) => {
      const session = await open(checked, { sessionId, resumed: false, abortSignal });
      try {
        await onFirstCreate?.(session.restricted(), abortSignal ? { abortSignal } : {});
        return session;
      } catch (error) {
        await session.stop();
        throw error;
      }
    },
    resumeSession: ({ sessionId, abortSignal }) => open(checked, { sessionId, resumed: true, abortSignal }),
  };
}

async function open(
  { createExecutor, destroy, allow = [] }: HarnessSandboxOptions,
  request: { readonly sessionId: string; readonly resumed: boolean; readonly abortSignal: AbortSignal | undefined },
): Promise<HarnessSandboxSession> {
  const { sessionId, resumed, abortSignal: signal } = request;
  if (!sessionIdPattern.test(sessionId)) {
    throw new InvalidInputError(
      `The session's id ${JSON.stringify(sessionId)} cannot name a container or a directory`,
      {
        remedy: "Use at most 128 letters, digits, `_`, `-` and `.`, starting with a letter or a digit.",
      },
    );
  }
  signal?.throwIfAborted();
  const policy = { allow };
  const made = await createExecutor({ sessionId, resumed, allow: () => policy.allow });
  const { executor } = checkOptions(created, { executor: made }, "createExecutor");
  try {
    await executor.start(signal ? { signal } : {});
    processesOf(executor);
  } catch (error) {
    await executor[Symbol.asyncDispose]();
    throw error;
  }
  return new ExecutorHarnessSession(executor, { sessionId, policy, destroy });
}

interface SessionParts {
  readonly sessionId: string;
  readonly policy: { allow: readonly string[] };
  readonly destroy: HarnessSandboxOptions["destroy"];
}

/** A sandbox with the methods that only the harness may call. */
class ExecutorHarnessSession extends SandboxOverProcesses implements HarnessSandboxSession {
  readonly #executor: CodeExecutor;
  readonly #parts: SessionParts;

  constructor(executor: CodeExecutor, parts: SessionParts) {
    super(executor, {});
    this.#executor = executor;
    this.#parts = parts;
  }

  get id(): string {
    return this.#parts.sessionId;
  }

  get defaultWorkingDirectory(): string {
    return this.#executor.workspacePath ?? "/";
  }

  get ports(): readonly number[] {
    return [...processesOf(this.#executor).ports.keys()];
  }

  async getPortUrl({ port, protocol = "http" }: HarnessPort): Promise<string> {
    const here = processesOf(this.#executor).ports.get(port);
    if (here !== undefined) return `${protocol}://127.0.0.1:${here}`;
    throw new InvalidInputError(`The sandbox does not publish port ${port}`, {
      remedy: "Publish it in createExecutor, for example with `dockerPorts` of DockerCommandLineCodeExecutor.",
    });
  }

  async getPortEndpoint(options: HarnessPort): Promise<{ readonly url: string }> {
    return { url: await this.getPortUrl(options) };
  }

  async stop(): Promise<void> {
    await this.#executor[Symbol.asyncDispose]();
  }

  async destroy(): Promise<void> {
    await this.stop();
    await this.#parts.destroy?.(this.id);
  }

  async setNetworkPolicy(policy: HarnessNetworkPolicy): Promise<void> {
    this.#parts.policy.allow = hostsOf(policy);
  }

  restricted(): ExecutorSandboxSession {
    return new SandboxOverProcesses(this.#executor, {});
  }
}

function hostsOf(policy: HarnessNetworkPolicy): readonly string[] {
  if (policy.mode === "allow-all") return ["*"];
  if (policy.mode === "deny-all") return [];
  const { allowedHosts = [], allowedCIDRs = [], deniedCIDRs = [] } = policy;
  if (allowedCIDRs.length === 0 && deniedCIDRs.length === 0) return [...allowedHosts];
  throw new InvalidInputError("A network policy with CIDRs is not supported", {
    remedy:
      "List hosts in `allowedHosts`; private, link-local and metadata addresses are refused without being listed.",
  });
}
