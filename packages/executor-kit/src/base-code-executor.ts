import { randomUUID } from "node:crypto";
import {
  type BeginningRun,
  type CheckpointOptions,
  type CheckpointReceipt,
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  type ComponentModel,
  type ExecuteOptions,
  type ExecutionEvent,
  type ExecutorCapabilities,
  type ExecutorProcesses,
  type ExecutorUsage,
  type FunctionPromptOptions,
  type FunctionWithRequirements,
  InvalidInputError,
  type RestoreReceipt,
  type RunEvent,
  type RunRecorder,
  type SessionHandle,
  type StartOptions,
  type SubmitOptions,
  type SubmittedRun,
  SubmittedRuns,
  type WorkspaceFiles,
} from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import { inThisContext } from "@fenced/core/telemetry";
import { type BaseExecutorOptions, baseOptions } from "./base-executor-options.ts";
import type { ObservedWorkspace } from "./changes/observed-workspace.ts";
import { WorkspaceObserver } from "./changes/workspace-observer.ts";
import { checkpointOptions } from "./checkpoints/checkpoint-options.ts";
import { SessionCheckpoints } from "./checkpoints/session-checkpoints.ts";
import { CurrentPlace } from "./current-place.ts";
import { ExecutorFunctions } from "./functions/executor-functions.ts";
import type { HostChoice } from "./host-calls/host-calls.ts";
import { LossReports } from "./loss-reports.ts";
import { type Backend, type Place, type PlaceFacts, PlaceGone, placeLost, type PlaceRuns } from "./place.ts";
import { type GuardPrograms, SessionProcesses } from "./processes/session-processes.ts";
import { ExecutionStream, type RunEvents, sizeOf } from "./run/execution-stream.ts";
import { guardWorkspace, notMeasurable } from "./run/guard-workspace.ts";
import { KeptRuns } from "./run/kept-runs.ts";
import { assertStdin, validateRun } from "./run/prepare-block.ts";
import { RecordedCall } from "./run/recorded-call.ts";
import { type BlockPlace, keepsEnding, mostPlaces } from "./run/run-block.ts";
import { RunHandOver } from "./run/run-hand-over.ts";
import { combineResults } from "./run/run-result.ts";
import { Run } from "./run/run.ts";
import { type Epoch, SessionLife } from "./session-life.ts";
import { ExecutorTelemetry } from "./telemetry/executor-telemetry.ts";
import { SessionFiles } from "./workspace/session-files.ts";

/** Time for finding out what an aborted run changed, for its record, in milliseconds. */
const lastLookMs = 5000;

/** What a fork shares with its original. */
export interface SharedParts {
  readonly functions: ExecutorFunctions;
  /** The name under which functions are set up. */
  readonly owner: string;
}

/**
 * Turns a `Backend`, which opens places, into a complete `CodeExecutor`: order of blocks, stop at the first failure, time limits,
 * abort, consumers that leave early, output limits, turns for stateful executors, function set-up, lazy start, and a
 * life cycle that survives concurrent calls.
 *
 * A subclass declares what it offers, opens its backend and dumps its configuration. Backends and their places never
 * overlap: one is closed before the next is opened, and blocks run only in an open place, which is replaced if it is lost.
 */
export abstract class BaseCodeExecutor<P extends Place = Place> implements CodeExecutor {
  /** What the executor is designed to do; an open session may report otherwise. */
  protected abstract readonly offered: ExecutorCapabilities;
  #id: string;
  #wasOpened = false;
  protected readonly timeoutMs: number;
  protected readonly totalTimeoutMs: number;
  protected readonly maxOutputBytes: number;
  protected readonly env: Readonly<Record<string, string>>;
  /** The functions whose source is copied to the code. */
  protected readonly functions: readonly FunctionWithRequirements[];
  protected readonly functionsModule: string;
  readonly #telemetry: ExecutorTelemetry;
  readonly #life: SessionLife<P> = new SessionLife<P>({
    open: (signal) => this.#telemetry.watchLifeCycle("start", () => this.#open(signal)),
    reset: (current, signal) => this.#telemetry.watchLifeCycle("restart", () => current.reset(signal)),
    close: (current, isDetached) => this.#telemetry.watchLifeCycle("stop", () => current.close(isDetached)),
  });
  #files: WorkspaceFiles | undefined;
  #processes: ExecutorProcesses | undefined;
  /** What the executor offered, corrected by the facts of the open session. */
  #known: { readonly facts: PlaceFacts; readonly capabilities: ExecutorCapabilities } | undefined;
  readonly #checkpoints: SessionCheckpoints;
  readonly #functions: ExecutorFunctions;
  readonly #sharedOwner: string | undefined;
  readonly #maxWorkspaceBytes: number | undefined;
  readonly #observer: WorkspaceObserver;
  readonly #record: RunRecorder | undefined;
  readonly #losses = new LossReports();
  readonly #keptRuns: KeptRuns;
  readonly #handOver: RunHandOver<P>;
  readonly #submitted = new SubmittedRuns({
    stream: (blocks, options, run) => this.#streamSubmitted(blocks, options, run),
    sizeOf,
  });

  /**
   * @throws InvalidInputError if an option common to all executors is wrong. Subclasses check their own with
   * `checkOptions`.
   * @param shared - what a fork shares with its original. Default: not a fork.
   * @param id - that of the executor whose session this one connects to. Default: a new one.
   */
  constructor(options: BaseExecutorOptions, shared?: SharedParts, id: string = randomUUID()) {
    this.#id = id;
    this.#telemetry = new ExecutorTelemetry(this, id);
    const checked = checkOptions(baseOptions, options, new.target.name);
    this.timeoutMs = checked.timeoutMs ?? 60_000;
    this.totalTimeoutMs = checked.totalTimeoutMs ?? Infinity;
    this.maxOutputBytes = checked.maxOutputBytes ?? 1_048_576;
    this.env = checked.env ?? {};
    this.functionsModule = checked.functionsModule ?? "functions";
    this.#sharedOwner = shared?.owner;
    this.#functions =
      shared?.functions ??
      new ExecutorFunctions({
        functions: checked.functions ?? [],
        moduleName: this.functionsModule,
        approve: checked.approveHostCall,
        maxCalls: checked.maxHostCalls ?? 256,
        telemetry: this.#telemetry,
        owner: new.target.name,
      });
    this.#keptRuns = new KeptRuns({
      functions: this.#functions,
      losses: this.#losses,
      telemetry: this.#telemetry,
      offered: () => this.offered,
    });
    this.functions = this.#functions.travelling;
    this.#maxWorkspaceBytes = checked.maxWorkspaceBytes;
    this.#observer = new WorkspaceObserver(checked);
    this.#record = checked.record;
    this.#handOver = new RunHandOver<P>({
      functions: this.#functions,
      losses: this.#losses,
      keptRuns: this.#keptRuns,
      timeoutMs: this.timeoutMs,
      totalTimeoutMs: this.totalTimeoutMs,
      maxOutputBytes: this.maxOutputBytes,
      maxWorkspaceBytes: checked.maxWorkspaceBytes,
      env: this.env,
      offered: () => this.offered,
      capabilities: () => this.capabilities,
      open: () => this.#life.open(),
      findPlace: (epoch, host, signal) => this.#findPlace(epoch, host, signal),
    });
    this.#checkpoints = new SessionCheckpoints(checked.restore);
    if (checked.onSessionLost) this.#losses.listen(checked.onSessionLost);
  }

  /**
   * Creates what outlives places, and opens them; the first one is opened at once. Never called while another backend
   * is open.
   *
   * @param signal - aborted if the executor is stopped in the meantime; throw then.
   * @throws BackendUnavailableError if the backend cannot be reached. First undo everything created so far.
   */
  protected abstract openBackend(signal: AbortSignal): Backend<P> | Promise<Backend<P>>;

  abstract dumpComponent(): ComponentModel;

  /**
   * Returns the same without functions and callbacks, for `handle`; see `withoutCallbacks`. Required if the executor's
   * places can outlive their programs.
   */
  protected dumpForHandle?(): ComponentModel;

  get capabilities(): ExecutorCapabilities {
    const { place } = this.#life;
    if (!place) return this.offered;
    const { facts } = place;
    if (this.#known?.facts !== facts) {
      const files = [...place.files.features, ...(place.watch ? (["watch"] as const) : [])];
      this.#known = { facts, capabilities: { ...this.offered, ...facts.capabilities, files } };
    }
    return this.#known.capabilities;
  }

  get files(): WorkspaceFiles {
    return (this.#files ??= new SessionFiles(this.#life));
  }

  get restored(): RestoreReceipt | undefined {
    return this.#checkpoints.restored;
  }

  get handle(): SessionHandle | undefined {
    const session = this.#life.place?.facts.session;
    return session && this.dumpForHandle && { version: 1, component: this.dumpForHandle(), session };
  }

  get processes(): ExecutorProcesses | undefined {
    if (this.capabilities.processes !== true) return undefined;
    const maxBytes = this.#maxWorkspaceBytes;
    const guard: GuardPrograms<P> = (place, sink, run) =>
      maxBytes === undefined ? run(sink) : guardWorkspace(place, maxBytes, sink, run);
    return (this.#processes ??= new SessionProcesses<P>(this.#life, { env: this.env, guard }));
  }

  get workspacePath(): string | undefined {
    return this.#life.place?.facts.workspacePath;
  }

  /** The place that was opened last, even if it is lost; `undefined` while the executor is not started. */
  protected get place(): P | undefined {
    return this.#life.place;
  }

  /**
   * Identifies the sessions of this executor object; globally unique. A session that outlives its program keeps its own
   * when this executor opens another one.
   */
  protected get id(): string {
    return this.#id;
  }

  /** The name under which functions are set up. */
  get #owner(): string {
    return this.#sharedOwner ?? this.#id;
  }

  /** What a fork of this executor shares with it. */
  protected get shared(): SharedParts {
    return { functions: this.#functions, owner: this.#owner };
  }

  /**
   * Waits for its turn, as a call of a stateful executor does, and calls `use` with the place.
   *
   * @throws ExecutorStoppedError if the executor has been stopped, or is stopped or restarted while this waits or runs;
   * `signal.reason` if it is aborted; BackendUnavailableError instead of `PlaceGone`, since what was in the place is gone.
   */
  protected async inTurn<T>(
    signal: AbortSignal | undefined,
    use: (place: P, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    const epoch = this.#life.open();
    const limit = new AbortController();
    const unfollow = followSignals(limit, [epoch.signal, signal]);
    let endTurn: (() => void) | undefined;
    try {
      endTurn = await epoch.turns.take(limit.signal);
      const place = await epoch.place(limit.signal);
      try {
        return await use(place, limit.signal);
      } catch (error) {
        if (!(error instanceof PlaceGone)) throw error;
        epoch.giveUp(place, error.message);
        throw placeLost(error);
      }
    } finally {
      endTurn?.();
      unfollow();
    }
  }

  onSessionLost(listener: (reason: string) => void): () => void {
    return this.#losses.listen(listener);
  }

  start(options: StartOptions = {}): Promise<void> {
    return this.#life.start(options);
  }

  stop(): Promise<void> {
    this.#losses.forget();
    return this.#life.stop();
  }

  async detach(): Promise<void> {
    if (this.capabilities.keepAlive !== true) {
      throw new InvalidInputError("The session ends with its program, so it cannot be left", {
        remedy: "Set `keepAliveMs`, or call stop().",
      });
    }
    this.#losses.forget();
    this.#keptRuns.leave();
    await this.#life.stop(true);
  }

  async restart(): Promise<void> {
    this.#losses.forget();
    await this.#life.restart();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#life.dispose();
  }

  executeCodeBlocks(blocks: readonly CodeBlock[], options: ExecuteOptions = {}): Promise<CodeResult> {
    return this.#telemetry.watchRun(blocks, undefined, (telemetry) => this.#run(blocks, options, { telemetry }));
  }

  streamCodeBlocks(blocks: readonly CodeBlock[], options: ExecuteOptions = {}): AsyncIterable<ExecutionEvent> {
    // The run belongs to the span that is active now, wherever its events are read.
    const run = inThisContext((events: RunEvents) =>
      this.#telemetry.watchRun(blocks, events, (telemetry) => this.#run(blocks, options, { telemetry, events })),
    );
    return new ExecutionStream(run);
  }

  async submit(blocks: readonly CodeBlock[], options: SubmitOptions = {}): Promise<SubmittedRun> {
    assertStdin(options, this.capabilities.stdin);
    this.#life.signal.throwIfAborted();
    const run = this.#submitted.submit(blocks, options);
    if (options.functions) this.#keptRuns.offer(run.id, options.functions);
    if (this.offered.keepAlive === true) await run.taken;
    return run;
  }

  run(id: string): SubmittedRun {
    return this.#submitted.run(id);
  }

  runs(): SubmittedRun[] {
    return this.#submitted.runs();
  }

  formatFunctionsForPrompt(template?: string, options?: FunctionPromptOptions): string {
    return this.#functions.format(template, options, this.capabilities);
  }

  async checkpoint(options: CheckpointOptions): Promise<CheckpointReceipt> {
    const checked = checkOptions(checkpointOptions, options, "checkpoint");
    return this.inTurn(checked.signal, (place, signal) =>
      this.#checkpoints.take(this.#withState(place), checked, signal),
    );
  }

  async usage(): Promise<ExecutorUsage> {
    return this.#life.withFiles(async (place) => {
      const [used, diskBytes] = await Promise.all([place.usage?.(), measureDisk(place)]);
      return { ...used, ...(diskBytes !== undefined && { diskBytes }) };
    });
  }

  async #run(
    blocks: readonly CodeBlock[],
    options: ExecuteOptions,
    { telemetry, events }: { readonly telemetry: ExecutorTelemetry | undefined; readonly events?: RunEvents },
  ): Promise<CodeResult> {
    const { stdin: takesStdin, stateful } = this.capabilities;
    validateRun(blocks, options, takesStdin);
    const host = this.#functions.choose(options.functions, this.offered);
    options.signal?.throwIfAborted();
    const epoch = this.#life.open();
    const { timeoutMs = this.timeoutMs, totalTimeoutMs = this.totalTimeoutMs, env, stdin } = options;
    const run = new Run({ signals: [epoch.signal, options.signal], totalTimeoutMs, events });
    const hasFunctions = this.#functions.any(host);
    const find = (signal: AbortSignal): P | Promise<P> =>
      (hasFunctions ? undefined : epoch.usablePlace) ?? this.#findPlace(epoch, host, signal);
    const record = this.#record && new RecordedCall(this.#record, this.constructor.name, blocks);
    const mustWait =
      stateful || hasFunctions || this.#observer.isOn || record !== undefined || epoch.usablePlace === undefined;
    let endTurn: (() => void) | undefined;
    let observed: ObservedWorkspace | undefined;
    try {
      const isReady =
        !mustWait ||
        (await run.prepare(async (signal) => {
          if (record) await untilAborted(record.begin(), signal);
          if (stateful) endTurn = await epoch.turns.take(signal);
          observed = await this.#observer.look(await find(signal), signal);
          return true;
        }));
      const takeLoss = (): boolean => this.#losses.take();
      if (isReady !== true) {
        const nothing = combineResults([], { complete: false, durationMs: 0, lost: takeLoss() });
        return record?.hasBegun === true ? await record.end(nothing) : nothing;
      }
      const giveUp = (place: Place, reason: string): void => epoch.giveUp(place, reason);
      const ends = [epoch.signal, options.signal, events?.left];
      const seen = observed;
      const result = await run.blocks(blocks, this.#blockPlace(epoch, { find, giveUp }), {
        telemetry,
        timeoutMs,
        maxOutputBytes: this.maxOutputBytes,
        host,
        env,
        stdin,
        takeLoss,
        hostCall: record && ((event) => record.hostCall(event)),
        ended: record && ((block) => record.block(block)),
        cutOff: record && ((outcome) => record.cutOff(outcome)),
        changes: seen && (() => seen.changes(this.#life.place, ends)),
      });
      return record ? await record.end(result) : result;
    } catch (error) {
      if (record?.hasBegun === true) {
        const ends = [epoch.signal, AbortSignal.timeout(lastLookMs)];
        await record.fail(error, await observed?.changes(this.#life.place, ends));
      }
      throw error;
    } finally {
      // A set-up goes on without its caller, in the interpreter of the next call.
      if (endTurn) void epoch.functionsSettled.then(endTurn);
      run.settle();
    }
  }

  /** The events of a submitted run: from the place, if that goes on with it by itself. */
  async *#streamSubmitted(
    blocks: readonly CodeBlock[],
    options: ExecuteOptions,
    beginning: BeginningRun,
  ): AsyncGenerator<ExecutionEvent | RunEvent, void, void> {
    if (this.offered.keepAlive !== true || this.#observer.isAskedFor || this.#record) {
      beginning.waits();
      yield* this.streamCodeBlocks(blocks, options);
      return;
    }
    const watched = this.#telemetry.beginRun(blocks);
    const within: <T>(action: () => T) => T = watched ? (action) => watched.within(action) : (action) => action();
    try {
      const kept = await within(() => this.#handOver.handOn(blocks, options, { ...beginning, watched }));
      if (!kept) beginning.waits();
      const telemetry = watched && this.#telemetry;
      const run = (events: RunEvents) => within(() => this.#run(blocks, options, { telemetry, events }));
      for await (const each of kept ?? new ExecutionStream(run)) {
        // What comes from the place is watched as it is read.
        if (!("seq" in each) && each.type === "result") watched?.end(each);
        yield each;
      }
    } catch (error) {
      watched?.fail(error);
      throw error;
    }
  }

  /** Goes on with the runs of earlier programs. */
  async #adoptRuns(runs: PlaceRuns, signal: AbortSignal): Promise<void> {
    const { runs: left, forgotten } = await untilAborted(runs.list(), signal);
    this.#submitted.adopt(this.#keptRuns.adopt(runs, left, this.#life.open()), forgotten);
  }

  /** The place, with the functions of a call. */
  async #findPlace(epoch: Epoch<P>, host: HostChoice, signal: AbortSignal): Promise<P> {
    for (let attempt = 1; ; attempt += 1) {
      const place = await epoch.place(signal);
      if (!this.#functions.any(host)) return place;
      try {
        const setUp = (): Promise<void> => this.#setUpFunctions(epoch, place, host);
        await untilAborted(epoch.setUpFunctionsOnce(place, host.variant ?? "", setUp), signal);
        return place;
      } catch (error) {
        if (!(error instanceof PlaceGone)) throw error;
        epoch.giveUp(place, error.message);
        if (attempt === mostPlaces) throw keepsEnding(error);
      }
    }
  }

  #blockPlace(epoch: Epoch<P>, places: Pick<BlockPlace, "find" | "giveUp">): BlockPlace {
    return {
      ...places,
      offered: this.offered.languages,
      env: this.env,
      functions: this.#functions,
      maxWorkspaceBytes: this.#maxWorkspaceBytes,
      begin: (running) => epoch.begin(running),
    };
  }

  async #open(signal: AbortSignal): Promise<CurrentPlace<P>> {
    if (this.#wasOpened && this.offered.keepAlive === true) this.#id = randomUUID();
    this.#wasOpened = true;
    const backend = await this.openBackend(signal);
    const current = new CurrentPlace(backend, (reason) => this.#losses.tell(reason));
    try {
      const place = await current.ready(signal);
      if (place.facts.lostState !== undefined) this.#losses.tell(place.facts.lostState);
      if (place.facts.isLeft === true && place.runs) await this.#adoptRuns(place.runs, signal);
      if (this.#maxWorkspaceBytes !== undefined && !place.files.diskUsage) throw notMeasurable();
      this.#observer.assertPossible(place);
      await this.#checkpoints.restoreTo(this.#withState(place), signal);
      return current;
    } catch (error) {
      await current.close(current.last?.facts.isLeft === true);
      throw error instanceof PlaceGone ? placeLost(error) : error;
    }
  }

  #withState(place: P): { readonly place: P; readonly isStateful: boolean } {
    const { stateful, languages } = { ...this.offered, ...place.facts.capabilities };
    return { place, isStateful: stateful && languages.includes("python") };
  }

  #setUpFunctions(epoch: Epoch<P>, place: P, host: HostChoice): Promise<void> {
    const { capabilities } = this;
    const { signal } = epoch;
    return this.#functions.setUp(host, place, {
      place: this.#blockPlace(epoch, { find: () => place }),
      capabilities,
      owner: this.#owner,
      signal,
    });
  }
}

async function measureDisk(place: Place): Promise<number | undefined> {
  return place.diskUsage?.(Infinity) ?? place.files.diskUsage?.(Infinity);
}
