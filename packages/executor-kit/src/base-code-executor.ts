import { randomUUID } from "node:crypto";
import {
  assertFunctionSet,
  InvalidInputError,
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  type ComponentModel,
  type ExecuteOptions,
  type ExecutionEvent,
  type ExecutorCapabilities,
  type FunctionWithRequirements,
  type WorkspaceFiles,
} from "@fenced/core";
import { inThisContext, type Operation } from "@fenced/core/telemetry";
import type { BaseExecutorOptions } from "./base-executor-options.ts";
import { formatFunctions } from "./functions/format-functions.ts";
import { setupPrograms, type FunctionPlaces } from "./functions/function-setup.ts";
import { runSetup } from "./functions/run-setup.ts";
import { followSignals, untilAborted } from "./run/abort.ts";
import type { BlockEvent, BlockOutcome, BlockRun } from "./run/block-run.ts";
import { ExecutionStream } from "./run/execution-stream.ts";
import { failedBlock, prepareBlock } from "./run/prepare-block.ts";
import { runInOrder } from "./run/run-in-order.ts";
import { timerDelay, validateEnvironment, validateRun } from "./run/validate-run.ts";
import { Session } from "./session.ts";
import { ExecutorTelemetry } from "./telemetry/executor-telemetry.ts";
import { SessionFiles } from "./workspace/session-files.ts";

/**
 * Turns one method, `runBlock`, into the whole contract of `CodeExecutor`: order, stop at the first failure, time
 * limits, abort, early leave, output limits, turns for stateful executors, function set-up, lazy start, and a life
 * cycle that survives concurrent calls.
 *
 * A subclass provides `capabilities`, four life-cycle methods, `runBlock` and `dumpComponent`. The base class sees to
 * it that the life-cycle methods never overlap, and that no block runs outside an open session.
 */
export abstract class BaseCodeExecutor implements CodeExecutor {
  abstract readonly capabilities: ExecutorCapabilities;
  readonly files: WorkspaceFiles;

  /** Names this executor object; unique in the world. */
  protected readonly id: string = randomUUID();
  protected readonly timeoutMs: number;
  protected readonly maxOutputBytes: number;
  protected readonly env: Readonly<Record<string, string>>;
  protected readonly functions: readonly FunctionWithRequirements[];
  protected readonly functionsModule: string;
  readonly #telemetry: ExecutorTelemetry = new ExecutorTelemetry(this, this.id);
  #session: Session | undefined;
  #closing: Promise<void> = Promise.resolve();

  /** @throws InvalidInputError if an option makes no sense. */
  constructor(options: BaseExecutorOptions) {
    this.timeoutMs = options.timeoutMs ?? 60_000;
    this.maxOutputBytes = options.maxOutputBytes ?? 1_048_576;
    this.env = { ...options.env };
    this.functions = [...(options.functions ?? [])];
    this.functionsModule = options.functionsModule ?? "functions";
    timerDelay(this.timeoutMs);
    validateEnvironment(this.env);
    assertFunctionSet(this.functions, this.functionsModule);
    if (!Number.isSafeInteger(this.maxOutputBytes) || this.maxOutputBytes < 0) {
      throw new InvalidInputError(`maxOutputBytes is ${this.maxOutputBytes}`, {
        remedy: "Give a whole number of bytes, from 0.",
      });
    }
    this.files = new SessionFiles(async () => {
      await this.start();
      return this.sessionFiles();
    });
  }

  /**
   * Makes the place ready where blocks run. Called when no session is open.
   *
   * @param signal - aborted if the executor is stopped meanwhile; then throw.
   * @throws BackendUnavailableError if it cannot be reached. `closeSession` is called then, to clean up.
   */
  protected abstract openSession(signal: AbortSignal): Promise<void>;

  /** Ends all processes, deletes all that was created. Must also work on a half-open session. No block is running. */
  protected abstract closeSession(): Promise<void>;

  /** Forgets variables and ends processes; the workspace's files stay. No block is running. */
  protected abstract resetSession(signal: AbortSignal): Promise<void>;

  /** The open session's files. */
  protected abstract sessionFiles(): WorkspaceFiles;

  /**
   * Runs one block: yields what it puts out, returns how it ended. When the consumer is slow, the next event is not
   * asked for, and the program must be made to wait.
   *
   * `run.signal` may abort at any time, also while an event is being consumed: kill everything that the block
   * started, and return once it is dead; what is returned, yielded or thrown after that is dropped.
   *
   * @throws WorkspacePathError, FileNotFoundError or InvalidInputError if a file of the name `run.filename` cannot be
   * made; the block fails with a sentence about it.
   * @throws BackendUnavailableError if the place where it runs broke down; the call rejects.
   */
  protected abstract runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void>;

  abstract dumpComponent(): ComponentModel;

  /**
   * Where this session keeps function modules; without it the executor offers no functions.
   *
   * @throws FunctionSetupError if it is already known that they cannot be set up.
   */
  protected functionPlaces(): Omit<FunctionPlaces, "owner"> | Promise<Omit<FunctionPlaces, "owner">> {
    return {};
  }

  /**
   * Sets the functions up once more, through `runBlock`: for an executor that had to replace the place where blocks
   * run in the middle of a session.
   *
   * @throws FunctionSetupError if they do not load there.
   */
  protected async setUpFunctionsAgain(): Promise<void> {
    if (this.#session) await this.#setUpFunctions(this.#session);
  }

  /** Why a language that the executor knows cannot be run here; `undefined`: it is unknown. */
  protected missingLanguage(_language: string): string | undefined {
    return undefined;
  }

  /**
   * Called before each call's blocks. An executor whose place may break down replaces it here, and calls
   * `forgetFunctions` if what was set up in there is gone.
   *
   * @throws BackendUnavailableError if it cannot be replaced; the call rejects.
   */
  protected repairSession(_signal: AbortSignal): Promise<void> {
    return Promise.resolve();
  }

  /** Has the functions set up again before the next block. */
  protected forgetFunctions(): void {
    this.#session?.forgetFunctions();
  }

  async start(): Promise<void> {
    await this.#open().ready;
  }

  stop(): Promise<void> {
    const session = this.#session;
    if (session) {
      this.#session = undefined;
      this.#closing = session.end().then(async () => {
        if (session.opened) await this.#telemetry.watchLifeCycle("stop", () => this.closeSession());
      });
    }
    return this.#closing;
  }

  async restart(): Promise<void> {
    const old = this.#session;
    // A session that is still being opened is as fresh as it gets.
    if (old?.opened === true) {
      const reset = (signal: AbortSignal) => this.#telemetry.watchLifeCycle("restart", () => this.resetSession(signal));
      this.#session = this.#newSession(reset, old.end());
    }
    await this.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async executeCodeBlocks(blocks: readonly CodeBlock[], options: ExecuteOptions = {}): Promise<CodeResult> {
    const events = this.#telemetry.watchRun(blocks, (operation) =>
      this.#run(blocks, options, { operation, texts: false }),
    );
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) return value;
    }
  }

  streamCodeBlocks(blocks: readonly CodeBlock[], options: ExecuteOptions = {}): AsyncIterable<ExecutionEvent> {
    const run = this.#run.bind(this);
    const open = (left: AbortSignal) =>
      this.#telemetry.watchRun(blocks, async function* (operation) {
        yield { type: "result", result: yield* run(blocks, options, { operation, texts: true, left }) };
      });
    return new ExecutionStream(inThisContext(open));
  }

  formatFunctionsForPrompt(template?: string): string {
    return formatFunctions(this.functions, this.functionsModule, template);
  }

  async *#run(
    blocks: readonly CodeBlock[],
    options: ExecuteOptions,
    consumer: { readonly operation: Operation; readonly texts: boolean; readonly left?: AbortSignal },
  ): AsyncGenerator<ExecutionEvent, CodeResult, void> {
    validateRun(blocks, options, this.capabilities.stdin);
    options.signal?.throwIfAborted();
    const session = this.#open();
    const controller = new AbortController();
    const unfollow = followSignals(controller, [session.signal, options.signal, consumer.left]);
    let endTurn: (() => void) | undefined;
    try {
      if (this.capabilities.stateful) endTurn = await session.turns.take(controller.signal);
      await untilAborted(session.ready, controller.signal);
      await untilAborted(this.repairSession(session.signal), controller.signal);
      await untilAborted(
        session.setUpFunctionsOnce(() => this.#setUpFunctions(session)),
        controller.signal,
      );
      const result = yield* runInOrder(blocks, {
        start: (block, limit) => this.#startBlock(block, options, limit),
        telemetry: this.#telemetry,
        signal: controller.signal,
        texts: consumer.texts,
        timeoutMs: options.timeoutMs ?? this.timeoutMs,
        maxOutputBytes: this.maxOutputBytes,
        begin: () => session.begin(),
      });
      this.#telemetry.endRun(consumer.operation, result);
      return result;
    } finally {
      endTurn?.();
      unfollow();
    }
  }

  #startBlock(
    block: CodeBlock,
    options: ExecuteOptions,
    signal: AbortSignal,
  ): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const prepared = prepareBlock(block, this.capabilities.languages, (language) => this.missingLanguage(language));
    if ("problem" in prepared) return failedBlock(prepared.problem);
    return this.runBlock({
      ...prepared,
      env: { ...this.env, ...options.env },
      timeoutMs: options.timeoutMs ?? this.timeoutMs,
      ...(options.stdin === undefined ? {} : { stdin: options.stdin }),
      signal,
    });
  }

  async #setUpFunctions(session: Session): Promise<void> {
    if (this.functions.length === 0) return;
    await this.#telemetry.watchLifeCycle("set_up_functions", () => this.#runSetupPrograms(session));
  }

  async #runSetupPrograms(session: Session): Promise<void> {
    const places = { ...(await this.functionPlaces()), owner: this.id };
    for (const program of setupPrograms(this.functions, this.functionsModule, places)) {
      await runSetup(program, {
        languages: this.capabilities.functions,
        signal: session.signal,
        begin: () => session.begin(),
        start: (block, options, signal) => this.#startBlock(block, options, signal),
      });
    }
  }

  #open(): Session {
    this.#session ??= this.#newSession((signal) =>
      this.#telemetry.watchLifeCycle("start", () => this.openSession(signal)),
    );
    return this.#session;
  }

  /** @param before - ends when the life-cycle methods may be called; it must not reject. */
  #newSession(
    open: (signal: AbortSignal) => Promise<void>,
    before: Promise<void> = this.#closing.catch(() => {}),
  ): Session {
    const session = new Session(async (signal) => {
      await before;
      try {
        signal.throwIfAborted();
        await open(signal);
      } catch (error) {
        const closed = this.closeSession();
        if (this.#session === session) {
          this.#session = undefined;
          this.#closing = closed;
        }
        await closed;
        throw error;
      }
    });
    return session;
  }
}
