import path from "node:path";
import { directoryStore } from "@fenced/checkpoints";
import type { CodeExecutor } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import type { DrainOptions } from "@fenced/pool";
import type { ReportingOptions } from "../e2b-handler-options.ts";
import { endServerPrograms } from "../guest/server-programs.ts";
import { E2BFailure } from "./e2b-failure.ts";
import { type EgressRules, isDenied } from "./egress-rules.ts";
import { KeptCheckpoints, type TakenCheckpoint } from "./kept-checkpoints.ts";
import { type Kept, KnownSandbox, type SandboxSettings } from "./known-sandbox.ts";
import { newId } from "./new-token.ts";
import { SandboxPlaces } from "./sandbox-places.ts";
import { Sandbox } from "./sandbox.ts";
import { type Snapshot, Snapshots } from "./snapshots.ts";
import { type LeftState, StateDirectory } from "./state-directory.ts";

/** How many sandboxes of an earlier server are connected to at the same time. */
const connectingAtOnce = 8;
/** A sandbox that cannot be paused when its time is up gets so many milliseconds more, so many times; then it is killed. */
const [pauseAgainMs, mostPauseAttempts] = [60_000, 10];
/** Those that a request resumes live at least so long, in milliseconds, as at E2B. */
const shortestAutoResumeMs = 300_000;

/** A sandbox that a client wants. */
export interface NewSandbox extends Omit<SandboxSettings, "id" | "base"> {
  readonly rules: EgressRules;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

/** How a sandbox begins to run. */
interface Opening {
  /** With whose files. */
  readonly checkpoint: Kept | undefined;
  readonly endAt: Date;
  readonly signal: AbortSignal;
}

/** All sandboxes of a server, running and paused. */
export class Sandboxes {
  readonly snapshots: Snapshots;
  readonly #options: ReportingOptions;
  readonly #places: SandboxPlaces;
  readonly #kept: KeptCheckpoints;
  readonly #state: StateDirectory | undefined;
  readonly #known = new Map<string, KnownSandbox>();
  #isClosing = false;

  /** @throws BackendUnavailableError if the state directory cannot be used. */
  constructor(options: ReportingOptions) {
    this.#options = options;
    const { stateDirectory, onError } = options;
    this.#state = stateDirectory === undefined ? undefined : new StateDirectory(stateDirectory, onError);
    const ownStore = stateDirectory === undefined ? undefined : path.join(stateDirectory, "checkpoints");
    this.#kept = new KeptCheckpoints({
      store: options.checkpoints ?? (ownStore === undefined ? undefined : directoryStore(ownStore)),
      maxKept: options.maxKept ?? 100,
      maxKeptBytes: options.maxKeptBytes ?? 68_719_476_736,
      onError,
    });
    this.snapshots = new Snapshots(this.#kept, this.#state);
    this.#places = new SandboxPlaces(options, {
      store: () => this.#kept.store,
      directory: this.#state?.sessions,
      find: (id) => this.#known.get(id),
      onLost: (id, reason) => this.#lost(id, reason),
    });
    if (this.#state) this.#takeOver(this.#state.load(), options.checkpoints === undefined);
  }

  /** @throws E2BFailure if there is no such template, or the time is too long; FencedError if it cannot be started. */
  async create({ signal, rules, ...wanted }: NewSandbox): Promise<KnownSandbox> {
    const { templates } = this.#options;
    const { templateId, owner, timeoutMs } = wanted;
    const snapshot = Object.hasOwn(templates, templateId) ? undefined : this.snapshots.find(owner, templateId);
    const base = snapshot?.base ?? templateId;
    this.#places.template(base);
    this.#checkTimeout(timeoutMs);
    const env = { ...snapshot?.env, ...wanted.env };
    // What a snapshot's sandbox must not reach, no copy of it reaches by default.
    const own = snapshot && !isDenied(rules) ? snapshot.rules : rules;
    const known = KnownSandbox.create({ ...wanted, env, base, id: newId("i") }, own);
    await this.#open(known, { checkpoint: snapshot?.kept, endAt: known.endAt, signal });
    known.say(snapshot ? `Created from the snapshot ${snapshot.id}` : "Created");
    return known;
  }

  /** @throws E2BFailure if sandboxes cannot be paused here. */
  assertKeeps(): void {
    void this.#kept.store;
  }

  /** Returns an owner's sandbox, or any owner's. */
  find(id: string, owner?: string): KnownSandbox | undefined {
    const known = this.#known.get(id);
    return known && (owner === undefined || known.settings.owner === owner) ? known : undefined;
  }

  /** All sandboxes of an owner, or of all owners. */
  all(owner?: string): readonly KnownSandbox[] {
    return [...this.#known.values()].filter(({ settings }) => owner === undefined || settings.owner === owner);
  }

  /**
   * Returns a sandbox for a request to it; `undefined` if it does not run.
   *
   * @param mayResume - resumes one that is paused if its client wants that.
   */
  async reach(known: KnownSandbox, mayResume: boolean): Promise<Sandbox | undefined> {
    if (known.sandbox) return known.sandbox;
    await known.opening;
    const { autoResume, timeoutMs } = known.settings;
    if (known.state === "paused" && autoResume && mayResume) {
      // It stays paused, and its client hears that; why is for the operator.
      await this.resume(known, Math.max(timeoutMs, shortestAutoResumeMs), known.signal).catch((error: unknown) => {
        if (!known.signal.aborted) this.#options.onError(error);
      });
    }
    return known.sandbox;
  }

  /** Kills a sandbox and deletes everything in it. */
  async kill(known: KnownSandbox, reason = "The sandbox was killed"): Promise<void> {
    this.#forget(known, reason);
    await known.inTurn(() => this.#end(known));
  }

  /**
   * Lets a sandbox live for so many milliseconds from now.
   *
   * @throws E2BFailure if that is too long, or it does not run.
   */
  async setTimeout(known: KnownSandbox, timeoutMs: number): Promise<void> {
    this.#checkTimeout(timeoutMs);
    await known.inTurn(async () => {
      this.#assertKnown(known);
      if (known.state === "paused") throw new E2BFailure(409, `sandbox "${known.settings.id}" is paused`);
      known.endAt = new Date(Date.now() + timeoutMs);
      this.#watchTime(known);
      await this.#save(known);
    });
  }

  /**
   * Replaces what a running sandbox's client wants of its network: new connections obey it.
   *
   * @throws E2BFailure if that cannot be enforced there, or it does not run.
   */
  async setRules(known: KnownSandbox, rules: EgressRules): Promise<void> {
    await known.inTurn(async () => {
      this.#assertKnown(known);
      if (known.state === "paused") throw new E2BFailure(409, `sandbox "${known.settings.id}" is paused`);
      this.#places.checkRules(known, rules);
      const before = known.rules;
      known.rules = rules;
      try {
        await this.#save(known);
      } catch (error) {
        known.rules = before;
        throw error;
      }
      known.say("The network rules were changed");
    });
  }

  /** Keeps a sandbox's files, and ends everything else of it until it is resumed. @throws E2BFailure if it is paused. */
  async pause(known: KnownSandbox): Promise<void> {
    await known.inTurn(async () => {
      this.#assertKnown(known);
      const { sandbox, settings, checkpoint: before, endAt } = known;
      const { id } = settings;
      if (!sandbox) throw new E2BFailure(409, `sandbox "${id}" is already paused`);
      // What clients write from now on would not be kept.
      known.sandbox = undefined;
      try {
        const { kept, missing } = await this.#take(known);
        Object.assign(known, { state: "paused", checkpoint: kept, endAt: new Date() });
        try {
          await this.#save(known);
        } catch (error) {
          Object.assign(known, { state: "running", checkpoint: before, endAt });
          this.#kept.release(kept);
          throw error;
        }
        known.say("Paused");
        if (missing !== undefined) known.say(missing, "warn");
      } catch (error) {
        if (!known.signal.aborted) known.sandbox = sandbox;
        throw error;
      }
      this.#kept.release(before);
      known.stopTime();
      sandbox.ended("The sandbox was paused");
      await this.#places.end(id).catch(this.#options.onError);
    });
  }

  /**
   * Starts a paused sandbox again, with its files.
   *
   * @returns false if it runs: then its life becomes longer, never shorter.
   * @throws E2BFailure if the time is too long; FencedError if it cannot be started.
   */
  async resume(known: KnownSandbox, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    this.#checkTimeout(timeoutMs);
    return known.inTurn(async () => {
      this.#assertKnown(known);
      const endAt = new Date(Math.max(Date.now() + timeoutMs, known.state === "running" ? known.endAt.getTime() : 0));
      if (known.state === "running") {
        if (endAt.getTime() !== known.endAt.getTime()) {
          known.endAt = endAt;
          this.#watchTime(known);
          await this.#save(known);
        }
        return false;
      }
      await this.#open(known, { checkpoint: known.checkpoint, endAt, signal: joinSignals(signal, known.signal) });
      known.say("Resumed");
      return true;
    });
  }

  /** Keeps a sandbox's files for new sandboxes. It goes on. */
  async snapshot(known: KnownSandbox, name: string | undefined): Promise<Snapshot> {
    const kept = await this.#keep(known);
    const snapshot = await this.snapshots.add(known, kept, name);
    known.say(`Snapshot ${snapshot.id} was taken`);
    return snapshot;
  }

  /**
   * Creates sandboxes with the files of another one, which goes on.
   *
   * @returns those that could be created, and errors.
   * @throws `signal.reason` if it is aborted: none of them stays then.
   */
  async fork(
    known: KnownSandbox,
    { count, timeoutMs, signal }: { readonly count: number; readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<readonly PromiseSettledResult<KnownSandbox>[]> {
    this.#checkTimeout(timeoutMs);
    const kept = await this.#keep(known);
    try {
      const forks = await Promise.allSettled(
        Array.from({ length: count }, async () => {
          const fork = KnownSandbox.create({ ...known.settings, timeoutMs, id: newId("i") }, known.rules);
          await this.#open(fork, { checkpoint: kept, endAt: fork.endAt, signal });
          fork.say(`Forked from ${known.settings.id}`);
          return fork;
        }),
      );
      // Nobody would know the ids of those that were ready before the client left.
      if (signal.aborted) {
        await Promise.all(forks.flatMap((fork) => (fork.status === "fulfilled" ? [this.kill(fork.value)] : [])));
      }
      signal.throwIfAborted();
      return forks;
    } finally {
      this.#kept.release(kept);
    }
  }

  /** Ends all sandboxes for good; with a state directory, leaves them to the next server. */
  async close(options: DrainOptions): Promise<void> {
    this.#isClosing = true;
    for (const known of this.all()) {
      known.stopTime();
      known.sandbox?.ended("The server is shutting down");
      known.sandbox = undefined;
      // Sandboxes that are being paused stay as they are.
      known.ended(closing());
    }
    await this.#places.close(options);
    this.#known.clear();
    if (!this.#state) await this.#kept.deleteAll();
    this.#kept.close();
    await this.#state?.close();
  }

  /** Starts a sandbox, new or paused. */
  async #open(known: KnownSandbox, { checkpoint, endAt, signal }: Opening): Promise<void> {
    const executor = await this.#places.start(known, checkpoint, signal);
    const { state, checkpoint: own, endAt: before } = known;
    const { id } = known.settings;
    try {
      Object.assign(known, { state: "running", checkpoint: undefined, endAt });
      await this.#save(known);
      // It was killed meanwhile, or nobody would know its id.
      signal.throwIfAborted();
      if (this.#isClosing) throw closing();
    } catch (error) {
      Object.assign(known, { state, checkpoint: own, endAt: before });
      const isKnown = this.#known.get(id) === known;
      await (isKnown ? this.#save(known) : this.#state?.remove("sandboxes", id))?.catch(this.#options.onError);
      await this.#places.end(id).catch(this.#options.onError);
      throw error;
    }
    this.#kept.release(own);
    this.#begin(known, executor);
  }

  #begin(known: KnownSandbox, executor: CodeExecutor): void {
    known.sandbox = new Sandbox(known, { executor, report: this.#options.onError });
    this.#known.set(known.settings.id, known);
    this.#watchTime(known);
  }

  /** Ends what is left of a sandbox that is forgotten. */
  async #end({ settings: { id }, checkpoint }: KnownSandbox): Promise<void> {
    await this.#state?.remove("sandboxes", id).catch(this.#options.onError);
    this.#kept.release(checkpoint);
    await this.#places.end(id);
  }

  async #take(known: KnownSandbox): Promise<TakenCheckpoint> {
    try {
      return await this.#kept.take(this.#places.executor(known.settings.id), known.signal);
    } catch (error) {
      this.#assertKnown(known);
      throw error;
    }
  }

  /** The files of a sandbox as they are, running or paused. */
  async #keep(known: KnownSandbox): Promise<Kept> {
    return known.inTurn(async () => {
      this.#assertKnown(known);
      if (known.state === "paused" && known.checkpoint) return this.#kept.share(known.checkpoint);
      const { kept, missing } = await this.#take(known);
      if (missing !== undefined) known.say(missing, "warn");
      return kept;
    });
  }

  async #save(known: KnownSandbox): Promise<void> {
    await this.#state?.write("sandboxes", known.settings.id, known.record);
  }

  /** Finds what an earlier server has left. */
  #takeOver({ sandboxes, snapshots, abandoned, isComplete }: LeftState, ownsStore: boolean): void {
    this.snapshots.load(snapshots);
    const waiting: KnownSandbox[] = [];
    for (const record of sandboxes) {
      const known = new KnownSandbox(record);
      this.#known.set(known.settings.id, known);
      if (known.checkpoint) this.#kept.share(known.checkpoint);
      if (known.state === "running") waiting.push(known);
    }
    // Several at a time; requests for one wait for it.
    let free: readonly Promise<unknown>[] = Array.from({ length: connectingAtOnce }, async () => {});
    for (const known of waiting) {
      const [next, ...others] = free;
      known.opening = known.inTurn(async () => {
        await next;
        await this.#connect(known);
      });
      free = [...others, known.opening];
    }
    // Those that were being created, paused or killed when the earlier server ended.
    for (const id of abandoned) void this.#places.end(id).catch(this.#options.onError);
    if (ownsStore && isComplete) void this.#kept.deleteUnknown();
  }

  /** Connects to a sandbox that an earlier server has left. Never rejects. */
  async #connect(known: KnownSandbox): Promise<void> {
    const { id } = known.settings;
    const isOver = (): boolean => this.#isClosing || known.signal.aborted;
    if (isOver()) return;
    try {
      const executor = await this.#places.connect(id, known.signal);
      if (executor.processes) await endServerPrograms(executor.processes, this.#options.onError);
      known.signal.throwIfAborted();
      this.#begin(known, executor);
      known.say("The server was started anew: contexts of the code interpreter have ended", "warn");
    } catch (error) {
      if (isOver()) return;
      this.#options.onError(new Error(`The sandbox ${id} of an earlier server is gone`, { cause: error }));
      this.#forget(known, "The sandbox is gone");
      await this.#end(known).catch(this.#options.onError);
    }
  }

  #checkTimeout(timeoutMs: number): void {
    const { maxTimeoutMs = 86_400_000 } = this.#options;
    if (timeoutMs <= maxTimeoutMs) return;
    const hours = Math.round(maxTimeoutMs / 36_000) / 100;
    throw new E2BFailure(400, `Timeout cannot be greater than ${hours} hours`);
  }

  /** @throws E2BFailure if it was killed. */
  #assertKnown(known: KnownSandbox): void {
    if (this.#isClosing) throw closing();
    const { id } = known.settings;
    if (this.#known.get(id) !== known) throw new E2BFailure(404, `sandbox "${id}" not found`);
  }

  #lost(id: string, reason: string): void {
    const known = this.#known.get(id);
    // One that is paused has nothing to lose.
    if (!known || known.state === "paused" || this.#isClosing) return;
    this.#forget(known, `The sandbox was lost: ${reason}`);
    known.inTurn(() => this.#end(known)).catch(this.#options.onError);
  }

  #watchTime(known: KnownSandbox, attempts = 0): void {
    known.watchTime(() => void this.#timeIsUp(known, attempts).catch(this.#options.onError));
  }

  async #timeIsUp(known: KnownSandbox, attempts: number): Promise<void> {
    const { id, onTimeout } = known.settings;
    if (onTimeout === "kill" || attempts >= mostPauseAttempts) {
      await this.kill(known, "The time of the sandbox is up");
      return;
    }
    try {
      await this.pause(known);
    } catch (error) {
      if (this.#isClosing || this.#known.get(id) !== known || known.state === "paused") return;
      this.#options.onError(error);
      known.endAt = new Date(Date.now() + pauseAgainMs);
      this.#watchTime(known, attempts + 1);
    }
  }

  #forget(known: KnownSandbox, reason: string): void {
    const { id } = known.settings;
    known.stopTime();
    this.#known.delete(id);
    known.sandbox?.ended(reason);
    known.sandbox = undefined;
    known.ended(new E2BFailure(404, `sandbox "${id}" not found`));
  }
}

function closing(): E2BFailure {
  return new E2BFailure(503, "The server is shutting down");
}
