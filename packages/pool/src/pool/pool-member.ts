import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { OwnedExecutor, recordNew } from "../owned-executor.ts";
import type { PoolSettings } from "./executor-pool-options.ts";

/** How long an idle executor may take to show that it is alive, in milliseconds. */
const checkLimitMs = 10_000;

/** What a member needs from its pool. */
export interface MemberHost {
  readonly settings: PoolSettings;
  /** Everything that `create` has returned, so that no executor is used twice. */
  readonly known: WeakSet<CodeExecutor>;
  /** Consecutive failed starts before this one. */
  readonly failuresBefore: number;
  /** Called when the executor's session is lost, or the executor cannot be reached. */
  readonly onLost: (member: PoolMember) => void;
}

/** One executor of a pool, from its creation to its end. */
export class PoolMember {
  state: "starting" | "ready" | "leased" | "ending" = "starting";
  /** Number of leases that have ended. */
  uses = 0;
  /** True if it broke down and must not be used again. */
  isUnwell = false;
  /** The time since which it has been ready, in terms of `performance.now()`. */
  readySince = 0;
  readonly begunAt: number = performance.now();
  readonly failuresBefore: number;
  /** Resolves when the executor is ready; rejects if it could not be created, started or warmed up. */
  readonly opened: Promise<void>;
  readonly #host: MemberHost;
  readonly #end = new AbortController();
  readonly #owned: OwnedExecutor;
  #executor: CodeExecutor | undefined;
  #checking: Promise<void> | undefined;

  constructor(host: MemberHost) {
    this.#host = host;
    this.failuresBefore = host.failuresBefore;
    const { settings } = host;
    this.#owned = new OwnedExecutor({
      create: (signal) => settings.create({ signal, onSessionLost: () => this.lost() }),
      onCreated: (executor) => this.#created(executor),
      prepare: settings.warmUp,
      startTimeoutMs: settings.startTimeoutMs,
      stopTimeoutMs: settings.stopTimeoutMs,
      signal: this.#end.signal,
      onError: settings.onError,
    });
    this.opened = this.#owned.opened.then((executor) => {
      this.#executor = executor;
    });
  }

  /** The executor, once it is ready. */
  get executor(): CodeExecutor {
    if (this.#executor) return this.#executor;
    throw new BackendUnavailableError("The executor has not started", { remedy: "Wait until it has started." });
  }

  get isEnding(): boolean {
    return this.state === "ending";
  }

  /** True if its start was abandoned because it took too long. */
  get isLate(): boolean {
    return this.#owned.isLate;
  }

  /** True if it may be used again. */
  get isUsable(): boolean {
    return !this.isUnwell && !this.isEnding;
  }

  /** Resets it for its next use. @returns whether it may be used again; never rejects. */
  async renew(): Promise<boolean> {
    try {
      await this.#owned.inTime(async (signal) => {
        await this.executor.restart();
        await emptyWorkspace(this.executor, signal);
        await this.#host.settings.warmUp?.(this.executor, signal);
      });
      return this.isUsable;
    } catch {
      return false;
    }
  }

  /** Checks that it is still alive, and tells the pool if it is not. Never rejects. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** Call this when it has broken down. */
  lost(): void {
    this.isUnwell = true;
    if (!this.isEnding) this.#host.onLost(this);
  }

  /** Stops it, even during its start. Resolves when it is gone or has taken too long to stop; never rejects. */
  async end(reason: unknown): Promise<void> {
    this.state = "ending";
    this.#end.abort(reason);
    await this.#owned.dispose();
  }

  async #check(): Promise<void> {
    try {
      if (await within(checkLimitMs, this.executor.files.list())) return;
    } catch {}
    this.lost();
  }

  #created(executor: CodeExecutor): void {
    recordNew(executor, this.#host.known);
    executor.onSessionLost?.(() => this.lost());
  }
}

/** Removes the workspace's files and directories. What `list` does not return may stay at its top: links and pipes. */
async function emptyWorkspace({ files }: CodeExecutor, signal: AbortSignal): Promise<void> {
  const top = { directories: true, recursive: false } as const;
  for (const { path } of await files.list(undefined, top)) {
    signal.throwIfAborted();
    await files.remove(path);
  }
  if ((await files.list(undefined, top)).length === 0) return;
  throw new BackendUnavailableError("The workspace could not be emptied", { remedy: "Set maxUses to 1." });
}
