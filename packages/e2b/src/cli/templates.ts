import type { CodeExecutor } from "@fenced/core";
import { ExecutorPool } from "@fenced/pool";
import type { SandboxRequest, SandboxTemplate } from "../e2b-handler-options.ts";
import type { CliOptions, GivenTemplate } from "./parse-options.ts";

/** How long sandboxes wait for the next server, in milliseconds. */
const keepAliveMs = 3_600_000;

/** What decides how an executor is created. */
type Wanted = Pick<SandboxRequest, "allowInternetAccess" | "restore">;

/** What most clients ask for, and what executors are kept ready for. */
const usual: Wanted = { allowInternetAccess: true, restore: undefined };

/** A template of the command line. */
interface CliTemplate {
  /** An image, or `os-sandbox`. */
  readonly source: string;
  /** Default: no executors are kept ready. */
  readonly pool: ExecutorPool | undefined;
}

/** The templates of the command line, with the executors that they keep ready. */
export class CliTemplates implements AsyncDisposable {
  readonly #options: CliOptions;
  readonly #templates: ReadonlyMap<string, CliTemplate>;

  /** @param onError - receives why an executor could not be made ready, or could not be ended. */
  constructor(options: CliOptions, onError: (error: unknown) => void) {
    this.#options = options;
    const { template, ready: min, maxSandboxes } = options;
    const given: readonly GivenTemplate[] =
      template.length > 0 ? template : [{ name: "base", source: "python:3-slim" }];
    const poolOf = ({ name, source }: GivenTemplate): ExecutorPool => {
      const create = (): Promise<CodeExecutor> => createExecutor(source, usual, options);
      return new ExecutorPool({ create, name, min, max: maxSandboxes + min, onError });
    };
    const pools = given.map((each): [string, CliTemplate] => [
      each.name,
      { source: each.source, pool: min > 0 ? poolOf(each) : undefined },
    ]);
    this.#templates = new Map(pools);
  }

  /** As `createE2BHandler` takes them. */
  get templates(): Readonly<Record<string, SandboxTemplate>> {
    const creating = ({ source, pool }: CliTemplate): SandboxTemplate => {
      return async (request) => {
        const isUsual = request.allowInternetAccess && !request.restore;
        if (!pool || !isUsual) return createExecutor(source, request, this.#options);
        return (await pool.acquire({ signal: request.signal })).executor;
      };
    };
    return Object.fromEntries([...this.#templates].map(([name, each]) => [name, creating(each)]));
  }

  /** Starts each template, and says what does not start: an image that does not exist, a sandbox that this machine cannot have. */
  async check(say: (message: string) => void, signal: AbortSignal): Promise<void> {
    for (const [name, { source, pool }] of this.#templates) {
      try {
        await (pool ? pool.start({ signal }) : this.#startOnce(source, signal));
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

  async #startOnce(source: string, signal: AbortSignal): Promise<void> {
    // It must not outlive this program.
    await using executor = await createExecutor(source, usual, { ...this.#options, state: undefined });
    await executor.start({ signal });
  }
}

async function createExecutor(
  source: string,
  { allowInternetAccess, restore }: Wanted,
  { network: given, state }: CliOptions,
): Promise<CodeExecutor> {
  const network = allowInternetAccess ? given : "none";
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
