import { type CheckpointStore, type CodeExecutor, QuotaExceededError } from "@fenced/core";
import { type DrainOptions, ExecutorSessions, type SessionDirectory } from "@fenced/pool";
import type { ReportingOptions, SandboxTemplate } from "../e2b-handler-options.ts";
import { E2BFailure } from "./e2b-failure.ts";
import type { Kept, SandboxSettings } from "./known-sandbox.ts";

/** What a place is created for. */
interface Wanted {
  readonly settings: SandboxSettings;
  readonly checkpoint: Kept | undefined;
}

/** How the places of sandboxes are created and kept. */
interface PlaceOptions {
  /** The checkpoints with which places start. */
  readonly store: () => CheckpointStore;
  /** Keeps the places for the next server. `undefined`: they end with this one. */
  readonly directory: SessionDirectory | undefined;
  readonly onLost: (id: string, reason: string) => void;
}

/** Where sandboxes run: each place is a session of `ExecutorSessions`, which owns its executor. */
export class SandboxPlaces {
  readonly #options: ReportingOptions;
  readonly #store: () => CheckpointStore;
  readonly #sessions: ExecutorSessions;
  readonly #starting = new Map<string, Wanted>();

  constructor(options: ReportingOptions, { store, directory, onLost }: PlaceOptions) {
    this.#options = options;
    this.#store = store;
    const { maxSandboxes = 32, startTimeoutMs, onError } = options;
    this.#sessions = new ExecutorSessions({
      create: (id, signal) => this.#createExecutor(id, signal),
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
   * @throws QuotaExceededError if there are too many, E2BFailure if there is no such template, FencedError if it does not start.
   */
  async start(settings: SandboxSettings, checkpoint: Kept | undefined, signal: AbortSignal): Promise<CodeExecutor> {
    const { id, base } = settings;
    this.#checkRoom();
    this.#starting.set(id, { settings, checkpoint });
    try {
      const executor = await this.connect(id, signal);
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
    const { base: template, env, allowInternetAccess } = wanted.settings;
    const restore = wanted.checkpoint && { store: this.#store(), id: wanted.checkpoint.id };
    return this.template(template)({ template, env, allowInternetAccess, restore, signal });
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
