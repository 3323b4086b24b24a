import {
  type AllowedNetwork,
  type CodeExecutor,
  type NetworkDenial,
  type NetworkPolicy,
  packageIndexes,
} from "@fenced/core";
import { ExecutorPool } from "@fenced/pool";
import type { NetworkTemplate, SandboxRequest } from "../e2b-handler-options.ts";
import type { CliOptions, GivenTemplate } from "./parse-options.ts";

/** How long sandboxes wait for the next server, in milliseconds. */
const keepAliveMs = 3_600_000;

/** What decides how an executor is created. */
type Wanted = Pick<SandboxRequest, "network" | "restore">;

/** A template of the command line. */
interface CliTemplate {
  /** An image, or `os-sandbox`. */
  readonly source: string;
  /** What code can reach at most. */
  readonly limit: NetworkPolicy;
  /** Default: no executors are kept ready. */
  readonly pool: ExecutorPool | undefined;
}

/** The rules that an executor's network obeys. */
interface FollowedRules {
  deny: AllowedNetwork["deny"];
}

/** The templates of the command line, with the executors that they keep ready. */
export class CliTemplates implements AsyncDisposable {
  readonly #options: CliOptions;
  readonly #templates: ReadonlyMap<string, CliTemplate>;
  /** Of the executors that are kept ready. */
  readonly #rules = new WeakMap<CodeExecutor, FollowedRules>();

  /** @param onError - receives why an executor could not be made ready, or could not be ended. */
  constructor(options: CliOptions, onError: (error: unknown) => void) {
    this.#options = options;
    const { template, ready: min, maxSandboxes } = options;
    const given: readonly GivenTemplate[] =
      template.length > 0 ? template : [{ name: "base", source: "python:3-slim" }];
    const pools = given.map(({ name, source }): [string, CliTemplate] => {
      const limit = limitOf(source, options);
      const create = (): Promise<CodeExecutor> => this.#createReady(source, limit);
      const pool = min > 0 ? new ExecutorPool({ create, name, min, max: maxSandboxes + min, onError }) : undefined;
      return [name, { source, limit, pool }];
    });
    this.#templates = new Map(pools);
  }

  /** As `createE2BHandler` takes them. */
  get templates(): Readonly<Record<string, NetworkTemplate>> {
    const creating = ({ source, limit, pool }: CliTemplate): NetworkTemplate["create"] => {
      return async ({ network, restore, signal }) => {
        const isUsual = !restore && (typeof network === "object" || network === limit);
        if (!pool || !isUsual) return createExecutor(source, { network, restore }, this.#options);
        const onLease = (executor: CodeExecutor): void => this.#follow(executor, network);
        return (await pool.acquire({ signal, onLease })).executor;
      };
    };
    return Object.fromEntries(
      [...this.#templates].map(([name, each]) => [name, { network: each.limit, create: creating(each) }]),
    );
  }

  /** An executor whose network obeys the rules of whichever client it is leased to. */
  async #createReady(source: string, limit: NetworkPolicy): Promise<CodeExecutor> {
    const rules: FollowedRules = { deny: undefined };
    const deny = (): readonly (string | NetworkDenial)[] => {
      const current = rules.deny ?? [];
      return typeof current === "function" ? current() : current;
    };
    const network = typeof limit === "object" ? { ...limit, deny } : limit;
    const executor = await createExecutor(source, { network, restore: undefined }, this.#options);
    this.#rules.set(executor, rules);
    return executor;
  }

  #follow(executor: CodeExecutor, network: NetworkPolicy | undefined): void {
    const rules = this.#rules.get(executor);
    if (rules && typeof network === "object") rules.deny = network.deny;
  }

  /** Starts each template, and says what does not start: an image that does not exist, a sandbox that this machine cannot have. */
  async check(say: (message: string) => void, signal: AbortSignal): Promise<void> {
    for (const [name, { source, limit, pool }] of this.#templates) {
      try {
        await (pool ? pool.start({ signal }) : this.#startOnce(source, limit, signal));
      } catch (error) {
        if (signal.aborted) return;
        const reason = error instanceof Error ? error.message : String(error);
        say(`Warning: the template ${name} cannot be started: ${reason}`);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pools = [...this.#templates.values()].flatMap(({ pool }) => pool ?? []);
    await Promise.all(pools.map((pool) => pool[Symbol.asyncDispose]()));
  }

  async #startOnce(source: string, network: NetworkPolicy, signal: AbortSignal): Promise<void> {
    // It must not outlive this program.
    await using executor = await createExecutor(
      source,
      { network, restore: undefined },
      { ...this.#options, state: undefined },
    );
    await executor.start({ signal });
  }
}

async function createExecutor(
  source: string,
  { network, restore }: Wanted,
  { state }: CliOptions,
): Promise<CodeExecutor> {
  const settings = {
    ...(network !== undefined && { network }),
    ...(restore && { restore }),
    ...(state !== undefined && { keepAliveMs }),
  };
  if (source === "os-sandbox") {
    const { LocalCommandLineCodeExecutor } = await import("@fenced/executor-local");
    return new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", ...settings });
  }
  const { DockerCommandLineCodeExecutor } = await import("@fenced/executor-docker");
  return new DockerCommandLineCodeExecutor({ image: source, workspacePath: "/home/user", ...settings });
}

/** What code can reach at most. By default, containers as their executor has it, and the OS sandbox nothing. */
function limitOf(source: string, { network, allow }: CliOptions): NetworkPolicy {
  if (allow) return { allow };
  return network ?? (source === "os-sandbox" ? "none" : { allow: packageIndexes });
}
