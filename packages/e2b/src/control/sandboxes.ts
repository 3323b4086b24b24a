import { randomInt } from "node:crypto";
import { type CodeExecutor, QuotaExceededError } from "@fenced/core";
import { afterMs } from "@fenced/core/abort";
import { type DrainOptions, ExecutorSessions } from "@fenced/pool";
import type { ReportingOptions, SandboxTemplate } from "../e2b-handler-options.ts";
import { E2BFailure } from "./e2b-failure.ts";
import { Sandbox, type SandboxSettings } from "./sandbox.ts";

/** A sandbox that a client wants. */
export interface NewSandbox extends Omit<SandboxSettings, "id"> {
  /** How long it lives, in milliseconds. */
  readonly timeoutMs: number;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

/** All sandboxes of a server. Each is a session of `ExecutorSessions`, which owns its executor. */
export class Sandboxes {
  readonly #options: ReportingOptions;
  readonly #sessions: ExecutorSessions;
  readonly #starting = new Map<string, SandboxSettings>();
  readonly #sandboxes = new Map<string, Sandbox>();
  readonly #timers = new Map<string, () => void>();
  #isClosing = false;

  constructor(options: ReportingOptions) {
    this.#options = options;
    const { maxSandboxes = 32, startTimeoutMs, onError } = options;
    this.#sessions = new ExecutorSessions({
      create: (id, signal) => this.#createExecutor(id, signal),
      idleTimeoutMs: Infinity,
      maxSessions: maxSandboxes,
      ...(startTimeoutMs !== undefined && { startTimeoutMs }),
      onSessionLost: (id, reason) => this.#lost(id, reason),
      onError,
    });
  }

  /** @throws E2BFailure if there is no such template, or the time is too long; FencedError if it cannot be started. */
  async create({ timeoutMs, signal, ...wanted }: NewSandbox): Promise<Sandbox> {
    this.#template(wanted.templateId);
    this.#checkTimeout(timeoutMs);
    this.#checkRoom();
    const settings: SandboxSettings = { ...wanted, id: newId() };
    const { id } = settings;
    this.#starting.set(id, settings);
    const executor = this.#sessions.executor(id);
    try {
      await executor.start({ signal });
      // Nobody would know its id.
      signal.throwIfAborted();
      if (this.#isClosing) throw new E2BFailure(503, "The server is shutting down");
      const sandbox = new Sandbox(settings, { executor, endAt: new Date(), report: this.#options.onError });
      this.#sandboxes.set(id, sandbox);
      this.setTimeout(sandbox, timeoutMs);
      return sandbox;
    } catch (error) {
      await this.#sessions.end(id).catch(this.#options.onError);
      throw error;
    } finally {
      this.#starting.delete(id);
    }
  }

  /** Returns a sandbox; `undefined` if there is none, or it is another owner's. Any owner: pass none. */
  find(id: string, owner?: string): Sandbox | undefined {
    const sandbox = this.#sandboxes.get(id);
    return sandbox && (owner === undefined || sandbox.settings.owner === owner) ? sandbox : undefined;
  }

  /** All sandboxes of an owner, or of all owners. */
  all(owner?: string): readonly Sandbox[] {
    return [...this.#sandboxes.values()].filter(({ settings }) => owner === undefined || settings.owner === owner);
  }

  /** Kills a sandbox and deletes everything in it. */
  async kill(sandbox: Sandbox, reason = "The sandbox was killed"): Promise<void> {
    const { id } = sandbox.settings;
    this.#forget(sandbox, reason);
    await this.#sessions.end(id);
  }

  /**
   * Lets a sandbox live for so many milliseconds from now.
   *
   * @throws E2BFailure if that is too long, or it has ended.
   */
  setTimeout(sandbox: Sandbox, timeoutMs: number): void {
    this.#checkTimeout(timeoutMs);
    const { id } = sandbox.settings;
    if (this.#sandboxes.get(id) !== sandbox) throw new E2BFailure(404, `sandbox "${id}" not found`);
    this.#timers.get(id)?.();
    sandbox.endAt = new Date(Date.now() + timeoutMs);
    const end = (): void => {
      this.kill(sandbox, "The time of the sandbox is up").catch(this.#options.onError);
    };
    this.#timers.set(id, afterMs(timeoutMs, end));
  }

  /** Ends all sandboxes for good. */
  async close(options: DrainOptions): Promise<void> {
    this.#isClosing = true;
    for (const sandbox of this.all()) this.#forget(sandbox, "The server is shutting down");
    await this.#sessions.drain(options);
  }

  async #createExecutor(id: string, signal: AbortSignal): Promise<CodeExecutor> {
    const settings = this.#starting.get(id);
    // A session that has ended does not begin again.
    if (!settings) throw new E2BFailure(404, "The sandbox was not found");
    const { templateId: template, env, allowInternetAccess } = settings;
    return this.#template(template)({ template, env, allowInternetAccess, signal });
  }

  #template(name: string): SandboxTemplate {
    const { templates } = this.#options;
    const template = Object.hasOwn(templates, name) ? templates[name] : undefined;
    if (template) return template;
    throw new E2BFailure(404, `template '${name}' not found; this server has ${Object.keys(templates).join(", ")}`);
  }

  #checkTimeout(timeoutMs: number): void {
    const { maxTimeoutMs = 86_400_000 } = this.#options;
    if (timeoutMs <= maxTimeoutMs) return;
    const hours = Math.round(maxTimeoutMs / 36_000) / 100;
    throw new E2BFailure(400, `Timeout cannot be greater than ${hours} hours`);
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

  #lost(id: string, reason: string): void {
    const sandbox = this.#sandboxes.get(id);
    if (!sandbox) return;
    this.#forget(sandbox, `The sandbox was lost: ${reason}`);
    this.#sessions.end(id).catch(this.#options.onError);
  }

  #forget(sandbox: Sandbox, reason: string): void {
    const { id } = sandbox.settings;
    this.#timers.get(id)?.();
    this.#timers.delete(id);
    this.#sandboxes.delete(id);
    sandbox.ended(reason);
  }
}

/** Like those of E2B: one label of a host name, without a hyphen, and 103 random bits. */
function newId(): string {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  return `i${Array.from({ length: 20 }, () => letters.charAt(randomInt(letters.length))).join("")}`;
}
