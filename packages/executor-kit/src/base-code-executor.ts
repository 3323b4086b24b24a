import { randomUUID } from "node:crypto";
import {
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
  type FunctionPromptOptions,
  type FunctionWithRequirements,
  type RestoreReceipt,
  type StartOptions,
  type SubmitOptions,
  type SubmittedRun,
  SubmittedRuns,
  type WorkspaceFiles,
} from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import { inThisContext } from "@fenced/core/telemetry";
import type { BackendSession, PlaceFacts } from "./backend-session.ts";
import { type BaseExecutorOptions, baseOptions } from "./base-executor-options.ts";
import { checkpointOptions } from "./checkpoints/checkpoint-options.ts";
import { SessionCheckpoints } from "./checkpoints/session-checkpoints.ts";
import { ExecutorFunctions } from "./functions/executor-functions.ts";
import type { HostChoice } from "./host-calls/host-calls.ts";
import { runProgram, SessionProcesses } from "./processes/session-processes.ts";
import { ExecutionStream, type RunEvents, sizeOf } from "./run/execution-stream.ts";
import { guardWorkspace, notMeasurable } from "./run/guard-workspace.ts";
import { assertStdin, validateRun } from "./run/prepare-block.ts";
import type { BlockPlace } from "./run/run-block.ts";
import { combineResults } from "./run/run-result.ts";
import { Run } from "./run/run.ts";
import { type Epoch, SessionLife } from "./session-life.ts";
import { ExecutorTelemetry } from "./telemetry/executor-telemetry.ts";
import { SessionFiles } from "./workspace/session-files.ts";

/** What a fork shares with its original. */
export interface SharedParts {
  readonly functions: ExecutorFunctions;
  /** The name under which functions are set up. */
  readonly owner: string;
}

/**
 * Turns a `BackendSession` into a complete `CodeExecutor`: order of blocks, stop at the first failure, time limits,
 * abort, consumers that leave early, output limits, turns for stateful executors, function set-up, lazy start, and a
 * life cycle that survives concurrent calls.
 *
 * A subclass declares what it offers, opens a session and dumps its configuration. Sessions never overlap: one is
 * closed before the next is opened, and blocks run only in an open session.
 */
export abstract class BaseCodeExecutor<Session extends BackendSession = BackendSession> implements CodeExecutor {
  /** What the executor is designed to do; an open session may report otherwise. */
  protected abstract readonly offered: ExecutorCapabilities;
  /** Identifies this executor object; globally unique. */
  protected readonly id: string = randomUUID();
  protected readonly timeoutMs: number;
  protected readonly totalTimeoutMs: number;
  protected readonly maxOutputBytes: number;
  protected readonly env: Readonly<Record<string, string>>;
  /** The functions whose source is copied to the code. */
  protected readonly functions: readonly FunctionWithRequirements[];
  protected readonly functionsModule: string;
  readonly #telemetry: ExecutorTelemetry = new ExecutorTelemetry(this, this.id);
  readonly #life: SessionLife<Session> = new SessionLife<Session>({
    open: (signal) => this.#telemetry.watchLifeCycle("start", () => this.#openSession(signal)),
    reset: (session, signal) => this.#telemetry.watchLifeCycle("restart", () => session.reset(signal)),
    close: (session) => this.#telemetry.watchLifeCycle("stop", () => session.close()),
  });
  #files: WorkspaceFiles | undefined;
  #processes: ExecutorProcesses | undefined;
  /** What the executor offered, corrected by the facts of the open session. */
  #known: { readonly facts: PlaceFacts; readonly capabilities: ExecutorCapabilities } | undefined;
  readonly #checkpoints: SessionCheckpoints;
  readonly #functions: ExecutorFunctions;
  readonly #owner: string;
  readonly #maxWorkspaceBytes: number | undefined;
  readonly #lossListeners = new Set<(reason: string) => unknown>();
  /** The host functions of calls whose blocks are running. */
  readonly #inUse = new Set<HostChoice>();
  readonly #submitted = new SubmittedRuns({
    stream: (blocks, options) => this.streamCodeBlocks(blocks, options),
    sizeOf,
  });
  /** The session was lost since the last result. */
  #lost = false;

  /**
   * @throws InvalidInputError if an option common to all executors is wrong. Subclasses check their own with
   * `checkOptions`.
   * @param shared - what a fork shares with its original. Default: not a fork.
   */
  constructor(options: BaseExecutorOptions, shared?: SharedParts) {
    const checked = checkOptions(baseOptions, options, new.target.name);
    this.timeoutMs = checked.timeoutMs ?? 60_000;
    this.totalTimeoutMs = checked.totalTimeoutMs ?? Infinity;
    this.maxOutputBytes = checked.maxOutputBytes ?? 1_048_576;
    this.env = checked.env ?? {};
    this.functionsModule = checked.functionsModule ?? "functions";
    this.#owner = shared?.owner ?? this.id;
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
    this.functions = this.#functions.travelling;
    this.#maxWorkspaceBytes = checked.maxWorkspaceBytes;
    this.#checkpoints = new SessionCheckpoints(checked.restore);
    if (checked.onSessionLost) this.#lossListeners.add(checked.onSessionLost);
  }

  /**
   * Opens a session. Never called while another session is open.
   *
   * @param signal - aborted if the executor is stopped while the session opens; throw then.
   * @throws BackendUnavailableError if the backend cannot be reached. First undo everything created so far.
   */
  protected abstract openSession(signal: AbortSignal): Promise<Session>;

  abstract dumpComponent(): ComponentModel;

  get capabilities(): ExecutorCapabilities {
    const facts = this.#life.session?.facts;
    if (facts?.capabilities === undefined) return this.offered;
    if (this.#known?.facts !== facts) this.#known = { facts, capabilities: { ...this.offered, ...facts.capabilities } };
    return this.#known.capabilities;
  }

  get files(): WorkspaceFiles {
    return (this.#files ??= new SessionFiles(this.#life));
  }

  get restored(): RestoreReceipt | undefined {
    return this.#checkpoints.restored;
  }

  get processes(): ExecutorProcesses | undefined {
    if (this.capabilities.processes !== true) return undefined;
    return (this.#processes ??= new SessionProcesses<Session>(this.#life, (session, program, sink) =>
      guardWorkspace(session, this.#maxWorkspaceBytes, sink, (guarded) =>
        runProgram(session, { ...program, env: { ...this.env, ...program.env } }, guarded),
      ),
    ));
  }

  get workspacePath(): string | undefined {
    return this.#life.session?.facts.workspacePath;
  }

  /** The open session; `undefined` while the executor is not started. */
  protected get session(): Session | undefined {
    return this.#life.session;
  }

  /** What a fork of this executor shares with it. */
  protected get shared(): SharedParts {
    return { functions: this.#functions, owner: this.#owner };
  }

  /**
   * Waits for its turn, as a call of a stateful executor does, and calls `use` with the open session.
   *
   * @throws ExecutorStoppedError if the executor has been stopped, or is stopped or restarted while this waits or runs;
   * `signal.reason` if it is aborted.
   */
  protected async inTurn<T>(
    signal: AbortSignal | undefined,
    use: (session: Session, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    const epoch = this.#life.open();
    const limit = new AbortController();
    const unfollow = followSignals(limit, [epoch.signal, signal]);
    let endTurn: (() => void) | undefined;
    try {
      endTurn = await epoch.turns.take(limit.signal);
      return await use(await epoch.repairedSession(limit.signal), limit.signal);
    } finally {
      endTurn?.();
      unfollow();
    }
  }

  /**
   * Sets up the functions again through the session's `run`, for a session that has replaced its backend in the middle
   * of a call.
   *
   * @throws FunctionSetupError if they do not load there.
   */
  protected async setUpFunctionsAgain(): Promise<void> {
    const { epoch, session } = this.#life;
    if (!epoch || !session) return;
    // Functions of other calls are set up again when those calls come.
    epoch.forgetFunctions();
    const choices = this.#inUse.size === 0 ? [this.#functions.chooseOwn()] : this.#inUse;
    for (const host of choices) {
      await epoch.setUpFunctionsOnce(host.variant ?? "", () => this.#setUpFunctions(epoch, session, host));
    }
  }

  /** Has the functions set up again before the next block. */
  protected forgetFunctions(): void {
    this.#life.epoch?.forgetFunctions();
  }

  /**
   * Call this as soon as you know that the session's state from earlier calls is gone: it calls `onSessionLost` and
   * sets `stateLost: true` in the next result.
   *
   * @param reason - a sentence that says what happened, for a log or a person.
   * @param options - `reported`: a block's outcome will report the loss itself.
   */
  protected sessionLost(reason: string, { reported = false }: { readonly reported?: boolean } = {}): void {
    if (!reported) this.#lost = true;
    for (const listener of this.#lossListeners) {
      try {
        // An error in the application's callback must not end a run or this process.
        const returned = listener(reason);
        if (returned instanceof Promise) returned.catch(() => {});
      } catch {}
    }
  }

  onSessionLost(listener: (reason: string) => void): () => void {
    // The same function may be given twice.
    const own = (reason: string): void => listener(reason);
    this.#lossListeners.add(own);
    return () => void this.#lossListeners.delete(own);
  }

  start(options: StartOptions = {}): Promise<void> {
    return this.#life.start(options);
  }

  stop(): Promise<void> {
    this.#lost = false;
    return this.#life.stop();
  }

  async restart(): Promise<void> {
    this.#lost = false;
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
    return this.#submitted.submit(blocks, options);
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
    return this.inTurn(checked.signal, (session, signal) => this.#checkpoints.take(session, checked, signal));
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
    let endTurn: (() => void) | undefined;
    // A separate object for each call, even if calls have the same functions.
    const inUse = { ...host };
    try {
      const hasFunctions = this.#functions.any(host);
      const ready = stateful || hasFunctions ? undefined : epoch.readySession;
      const session =
        ready ??
        (await run.prepare(async (signal) => {
          if (stateful) endTurn = await epoch.turns.take(signal);
          const opened = await epoch.repairedSession(signal);
          if (hasFunctions) {
            const setUp = (): Promise<void> => this.#setUpFunctions(epoch, opened, host);
            await untilAborted(epoch.setUpFunctionsOnce(host.variant ?? "", setUp), signal);
          }
          return opened;
        }));
      this.#inUse.add(inUse);
      const takeLoss = (): boolean => this.#takeLoss();
      if (!session) return combineResults([], { complete: false, durationMs: 0, lost: takeLoss() });
      return await run.blocks(blocks, this.#placeOf(epoch, session), {
        telemetry,
        timeoutMs,
        maxOutputBytes: this.maxOutputBytes,
        host,
        env,
        stdin,
        takeLoss,
      });
    } finally {
      this.#inUse.delete(inUse);
      endTurn?.();
      run.settle();
    }
  }

  #takeLoss(): boolean {
    const lost = this.#lost;
    this.#lost = false;
    return lost;
  }

  #placeOf(epoch: Epoch<Session>, session: Session): BlockPlace {
    return {
      session,
      languages: this.capabilities.languages,
      env: this.env,
      functions: this.#functions,
      maxWorkspaceBytes: this.#maxWorkspaceBytes,
      begin: (running) => epoch.begin(running),
    };
  }

  async #openSession(signal: AbortSignal): Promise<Session> {
    const session = await this.openSession(signal);
    try {
      if (this.#maxWorkspaceBytes !== undefined && !session.files.diskUsage) throw notMeasurable();
      await this.#checkpoints.restoreTo(session, signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  #setUpFunctions(epoch: Epoch<Session>, session: Session, host: HostChoice): Promise<void> {
    const { capabilities } = this;
    const { signal } = epoch;
    return this.#functions.setUp(host, {
      place: this.#placeOf(epoch, session),
      capabilities,
      owner: this.#owner,
      signal,
    });
  }
}
