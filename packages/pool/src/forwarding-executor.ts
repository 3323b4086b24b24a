import type { Duplex } from "node:stream";
import {
  capabilitiesUnknown,
  type CheckpointOptions,
  type CheckpointReceipt,
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  ComponentError,
  type ComponentModel,
  type ExecuteOptions,
  type ExecutionEvent,
  type ExecutorCapabilities,
  type ConnectedProcess,
  type ExecutorProcesses,
  type ExecutorUsage,
  type FunctionPromptOptions,
  InvalidInputError,
  type ProcessOptions,
  type RestoreReceipt,
  RunNotFoundError,
  type ListedProcess,
  type RunningProcess,
  type TerminalProcess,
  type TerminalSize,
  type StartOptions,
  type SubmitOptions,
  type SubmittedRun,
  type SubmittedRuns,
  type WorkspaceFiles,
  type WritableProcess,
} from "@fenced/core";

/** Where the executor of a session or a lease sends its calls. */
export interface ForwardingTarget {
  run(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult>;
  runStream(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent>;
  /** The submitted runs, which must go through `runStream`. */
  runs(): SubmittedRuns;
  /**
   * Submits a run that goes on without this process; resolves to `undefined` if the executor's runs do not. Default: all
   * runs are those of `runs`.
   */
  readonly submit?: (blocks: readonly CodeBlock[], options?: SubmitOptions) => Promise<SubmittedRun | undefined>;
  files(): WorkspaceFiles;
  end(): Promise<void>;
  /** Calls `action` with the underlying executor, started. */
  use<T>(action: (executor: CodeExecutor) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Called before the underlying executor gives a port of its programs an address, which leads there until it stops. */
  onAddress?(): void;
  /** See `CodeExecutor.onSessionLost`. */
  onSessionLost(listener: (reason: string) => void): () => void;
  /** The underlying executor, once it has started; `undefined` before and after. */
  readonly current: CodeExecutor | undefined;
  /** Names it at the start of a sentence: `A session of ExecutorSessions`. */
  readonly kind: string;
}

/**
 * The executor that a session or a lease passes to agents and tools. Its `stop()` ends the session or lease, and with
 * it the underlying executor.
 */
export class ForwardingExecutor implements CodeExecutor {
  readonly #target: ForwardingTarget;

  constructor(target: ForwardingTarget) {
    this.#target = target;
  }

  get capabilities(): ExecutorCapabilities {
    const { capabilities } = this.#known();
    if (capabilities.keepsRuns !== true || this.#target.submit) return capabilities;
    // Runs of a session that is not left in its place, and of a lease, end with this process.
    return { ...capabilities, keepsRuns: false };
  }

  get files(): WorkspaceFiles {
    return this.#target.files();
  }

  /** Started programs do not count as running: the session may still become idle, which ends it and them. */
  get processes(): ExecutorProcesses | undefined {
    const { current } = this.#target;
    // Before the start, only a program's start can tell whether there are any.
    return current && !current.processes ? undefined : new ForwardingProcesses(this.#target);
  }

  get workspacePath(): string | undefined {
    return this.#target.current?.workspacePath;
  }

  async start({ signal }: StartOptions = {}): Promise<void> {
    await this.#target.use(async () => {}, signal);
  }

  async stop(): Promise<void> {
    await this.#target.end();
  }

  async restart(): Promise<void> {
    await this.#target.use((executor) => executor.restart());
  }

  get restored(): RestoreReceipt | undefined {
    return this.#target.current?.restored;
  }

  async checkpoint(options: CheckpointOptions): Promise<CheckpointReceipt> {
    return this.#target.use(async (executor) => {
      const taking = executor.checkpoint?.(options);
      if (taking) return taking;
      throw new InvalidInputError("Checkpoints cannot be taken here", {
        remedy: "Create executors that have the method checkpoint(), as all of Fenced's do.",
      });
    }, options.signal);
  }

  async usage(): Promise<ExecutorUsage> {
    return this.#target.use(async (executor) => (await executor.usage?.()) ?? {});
  }

  executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    return this.#target.run(blocks, options);
  }

  streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent> {
    return this.#target.runStream(blocks, options);
  }

  async submit(blocks: readonly CodeBlock[], options?: SubmitOptions): Promise<SubmittedRun> {
    return (await this.#target.submit?.(blocks, options)) ?? this.#target.runs().submit(blocks, options);
  }

  run(id: string): SubmittedRun {
    const found = this.runs().find((run) => run.id === id);
    if (found) return found;
    const { submit, current, kind } = this.#target;
    if (submit && !current) {
      throw new RunNotFoundError(`${kind} is not open in this process, so its runs are not known here`, {
        remedy: "Call start() first, which opens it, and then run().",
      });
    }
    // Says whether there was such a run.
    return (this.#keeper ?? this.#target.runs()).run(id);
  }

  runs(): SubmittedRun[] {
    return [...(this.#keeper?.runs() ?? []), ...this.#target.runs().runs()];
  }

  /** The underlying executor, if its runs go on without this process. */
  get #keeper(): CodeExecutor | undefined {
    const { submit, current } = this.#target;
    return submit && current?.capabilities.keepsRuns === true ? current : undefined;
  }

  formatFunctionsForPrompt(template?: string, options?: FunctionPromptOptions): string {
    return this.#known().formatFunctionsForPrompt(template, options);
  }

  onSessionLost(listener: (reason: string) => void): () => void {
    return this.#target.onSessionLost(listener);
  }

  dumpComponent(): ComponentModel {
    throw new ComponentError(`${this.#target.kind} cannot be dumped`, {
      remedy: "Dump the executor that create returns.",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #known(): CodeExecutor {
    const { current, kind } = this.#target;
    if (current) return current;
    throw capabilitiesUnknown(kind);
  }
}

/** Programs of the executor of a session or a lease. */
class ForwardingProcesses implements ExecutorProcesses {
  readonly #target: ForwardingTarget;

  constructor(target: ForwardingTarget) {
    this.#target = target;
  }

  get ports(): ReadonlyMap<number, number> {
    return this.#target.current?.processes?.ports ?? new Map<number, number>();
  }

  start(options: ProcessOptions & { readonly pty: TerminalSize }): Promise<TerminalProcess>;
  start(options: ProcessOptions & { readonly stdin: true }): Promise<WritableProcess>;
  start(options: ProcessOptions): Promise<RunningProcess>;
  start(options: ProcessOptions): Promise<RunningProcess> {
    return this.#use((processes) => processes.start(options), options.signal);
  }

  list(): Promise<readonly ListedProcess[]> {
    return this.#use((processes) => processes.list());
  }

  connect(pid: number): Promise<ConnectedProcess> {
    return this.#use((processes) => processes.connect(pid));
  }

  address(port: number): Promise<string> {
    return this.#use((processes) => {
      this.#target.onAddress?.();
      return processes.address(port);
    });
  }

  openPort(port: number): Promise<Duplex> {
    return this.#use((processes) => processes.openPort(port));
  }

  #use<T>(use: (processes: ExecutorProcesses) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#target.use(async ({ processes }) => {
      if (processes) return use(processes);
      throw new InvalidInputError("Programs cannot be started alongside blocks here", {
        remedy: "Create executors whose `capabilities.processes` is true.",
      });
    }, signal);
  }
}
