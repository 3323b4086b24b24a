import {
  type AllowedNetwork,
  type CheckpointStore,
  type CodeExecutor,
  connectExecutor,
  type NetworkPolicy,
  QuotaExceededError,
} from "@fenced/core";
import { type DrainOptions, ExecutorSessions, type SessionDirectory } from "@fenced/pool";
import type { ReportingOptions, SandboxCreator, SandboxTemplate } from "../e2b-handler-options.ts";
import { E2BFailure } from "./e2b-failure.ts";
import type { EgressRules } from "./egress-rules.ts";
import type { Kept, KnownSandbox } from "./known-sandbox.ts";
import { assertChangeable, assertObeyed, type GivenNetwork, narrowed, networkFor } from "./template-network.ts";

/** What a place is created for. */
interface Wanted {
  readonly known: KnownSandbox;
  readonly network: NetworkPolicy | undefined;
  readonly checkpoint: Kept | undefined;
}

/** How the places of sandboxes are created and kept. */
interface PlaceOptions {
  /** The checkpoints with which places start. */
  readonly store: () => CheckpointStore;
  /** Keeps the places for the next server. `undefined`: they end with this one. */
  readonly directory: SessionDirectory | undefined;
  /** The sandbox of a place that an earlier server has left. */
  readonly find: (id: string) => KnownSandbox | undefined;
  readonly onLost: (id: string, reason: string) => void;
}

/** Where sandboxes run: each place is a session of `ExecutorSessions`, which owns its executor. */
export class SandboxPlaces {
  readonly #options: ReportingOptions;
  readonly #store: () => CheckpointStore;
  readonly #sessions: ExecutorSessions;
  readonly #starting = new Map<string, Wanted>();

  constructor(options: ReportingOptions, { store, directory, find, onLost }: PlaceOptions) {
    this.#options = options;
    this.#store = store;
    const { maxSandboxes = 32, startTimeoutMs, onError } = options;
    this.#sessions = new ExecutorSessions({
      create: (id, signal) => this.#createExecutor(id, signal),
      connect: async (id, handle, signal) => {
        const network = this.#leftNetwork(find(id));
        return connectExecutor(handle, { takeOver: true, ...(network && { network }), ...(signal && { signal }) });
      },
      idleTimeoutMs: Infinity,
      maxSessions: maxSandboxes,
      ...(directory && { directory, onDrain: "detach" }),
      ...(startTimeoutMs !== undefined && { startTimeoutMs }),
      onSessionLost: onLost,
      onError,
    });
  }

  /**
   * Starts the place of a sandbox, with the files of a checkpoint if there is one. Nothing is left of it if that fails.
   *
   * @throws QuotaExceededError if there are too many; E2BFailure if there is no such template, or its network cannot be as the client
   *   wants; FencedError if it does not start.
   */
  async start(known: KnownSandbox, checkpoint: Kept | undefined, signal: AbortSignal): Promise<CodeExecutor> {
    const { id, base } = known.settings;
    const given: GivenNetwork = networkFor(base, limitOf(this.template(base)), known);
    this.#checkRoom();
    this.#starting.set(id, { known, network: given.network, checkpoint });
    try {
      const executor = await this.connect(id, signal);
      assertObeyed(base, given, executor);
      known.reach = given.reach;
      if (checkpoint && executor.restored?.id !== checkpoint.id) {
        throw new Error(`The template ${base} must pass \`restore\` on to its executor`);
      }
      return executor;
    } catch (error) {
      await this.end(id).catch(this.#options.onError);
      throw error;
    } finally {
      this.#starting.delete(id);
    }
  }

  /** @throws E2BFailure if a sandbox that runs cannot follow new rules. */
  checkRules({ settings: { base }, reach }: KnownSandbox, rules: EgressRules): void {
    assertChangeable(base, { reach, limit: limitOf(this.template(base)), rules });
  }

  /** Connects to a place that an earlier server has left. @throws FencedError if it is gone; `signal.reason`. */
  async connect(id: string, signal: AbortSignal): Promise<CodeExecutor> {
    const executor = this.executor(id);
    await executor.start({ signal });
    // Nobody would know its id.
    signal.throwIfAborted();
    return executor;
  }

  /** The executor of a place that was started. */
  executor(id: string): CodeExecutor {
    return this.#sessions.executor(id);
  }

  /** Ends a place, with everything in it, also one that an earlier server has left. */
  async end(id: string): Promise<void> {
    await this.#sessions.end(id);
  }

  /** Ends all of them; with a directory, leaves them to the next server. */
  async close(options: DrainOptions): Promise<void> {
    await this.#sessions.drain(options);
  }

  /** @throws E2BFailure if there is none with this name. */
  template(name: string): SandboxTemplate {
    const { templates } = this.#options;
    const template = Object.hasOwn(templates, name) ? templates[name] : undefined;
    if (template) return template;
    throw new E2BFailure(404, `template '${name}' not found; this server has ${Object.keys(templates).join(", ")}`);
  }

  async #createExecutor(id: string, signal: AbortSignal): Promise<CodeExecutor> {
    const wanted = this.#starting.get(id);
    // A session that has ended does not begin again.
    if (!wanted) throw new E2BFailure(404, "The sandbox was not found");
    const { base: template, env } = wanted.known.settings;
    const restore = wanted.checkpoint && { store: this.#store(), id: wanted.checkpoint.id };
    return creatorOf(this.template(template))({ template, env, network: wanted.network, restore, signal });
  }

  /** The policy of a place that was started with one. If its template has none any more, it reaches nothing. */
  #leftNetwork(known: KnownSandbox | undefined): AllowedNetwork | undefined {
    const { templates } = this.#options;
    if (known?.reach !== "rules") return undefined;
    const { base } = known.settings;
    const limit = Object.hasOwn(templates, base) ? limitOf(templates[base]) : undefined;
    return typeof limit === "object" ? narrowed(limit, known) : { allow: [] };
  }

  /** The sessions refuse more, too, but name their own option. */
  #checkRoom(): void {
    const { maxSandboxes = 32 } = this.#options;
    const { open, starting, ending } = this.#sessions.counts;
    if (open + starting + ending < maxSandboxes) return;
    throw new QuotaExceededError(`There are already ${maxSandboxes} sandboxes, the most that this server allows`, {
      remedy: "Kill one, try again when one has ended, or raise `maxSandboxes` (`--max-sandboxes`).",
    });
  }
}

/** The network policy of a template, if it has said it. */
function limitOf(template: SandboxTemplate | undefined): NetworkPolicy | undefined {
  return typeof template === "object" ? template.network : undefined;
}

function creatorOf(template: SandboxTemplate): SandboxCreator {
  return typeof template === "object" ? template.create : template;
}
