import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import { joinSignals, lateSignal, untilAborted, within } from "@fenced/core/abort";
import type { ExecutorSandbox } from "../executor-sandbox.ts";
import type { ExecutorSandboxes } from "../executor-sandboxes.ts";

/** How long the end of a claim waits for its sandbox, in milliseconds: the worker serves nobody else meanwhile. */
const closeMs = 60_000;
/** How long an aborted call has to say what it had until then, in milliseconds: the worker waits for 30 seconds. */
const abortMs = 15_000;
/** How long the files of a session may take to be kept, in milliseconds. */
const keepMs = 45_000;
/** Of how many sessions the kept files are remembered. */
const maxKept = 10_000;

/** A call of a tool, once there is a sandbox for it. */
export interface ToolCall {
  readonly sandbox: ExecutorSandbox;
  /** Changes when the model was told that what ran in the sandbox is gone. */
  readonly generation: number;
  /** Aborted when the call or the claim is. */
  readonly signal: AbortSignal;
}

/** What a tool does. Its failures are `ToolError`s, or errors of Fenced. */
export type ToolRun = (input: unknown, call: ToolCall) => Promise<string>;

/** The files of a session that may come back. */
export interface KeptFiles {
  /** Absent if there are none. */
  readonly snapshot?: string | undefined;
  /** Why they are not those that it had last. */
  readonly problem?: string | undefined;
}

/** What a claim is made of. */
export interface ClaimParts {
  readonly id: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly sandboxes: ExecutorSandboxes;
  readonly kept: Map<string, KeptFiles>;
}

/** A session that a worker has claimed, and its sandbox: started by the first call, replaced if it was stopped, ended with the claim. */
export class ClaimedSession {
  readonly #parts: ClaimParts;
  readonly #closing = new AbortController();
  #opening: Promise<ExecutorSandbox> | undefined;
  /** Its executor was stopped, so that the next call needs another one. */
  #isStopped = false;
  #generation = 0;
  #closed: Promise<void> | undefined;
  /** Why the sandbox was lost, until the model is told. */
  #lost: string | undefined;
  /** The model was told of a loss that the executor has not reported yet. */
  #wasTold = false;

  constructor(parts: ClaimParts) {
    this.#parts = parts;
  }

  /** Runs a tool. Whatever goes wrong is thrown as the `ToolError` that the model gets. */
  async call(name: string, run: ToolRun, input: unknown, asked: AbortSignal | undefined): Promise<string> {
    const signal = joinSignals(asked, this.#closing.signal);
    try {
      const sandbox = await untilAborted(this.#sandbox(), signal);
      this.#tellLoss(name);
      using late = lateSignal(signal, abortMs);
      const result = await untilAborted(run(input, { sandbox, generation: this.#generation, signal }), late.signal);
      this.#wasTold = false;
      return result;
    } catch (error) {
      this.#note(error instanceof ToolError ? error.cause : error);
      if (error instanceof ToolError) throw error;
      if (signal.aborted) throw new ToolError(`${name}: aborted`);
      throw new ToolError(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Ends the sandbox. Returns in any case; what takes too long is ended later. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  #sandbox(): Promise<ExecutorSandbox> {
    this.#closing.signal.throwIfAborted();
    if (this.#opening && !this.#isStopped) return this.#opening;
    this.#isStopped = false;
    const opening = this.#open();
    this.#opening = opening;
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  async #open(): Promise<ExecutorSandbox> {
    const { id, given, sandboxes, kept } = this.#parts;
    const { signal } = this.#closing;
    // One of an earlier claim, which has not ended yet, is not shared but replaced.
    const isNew = !sandboxes.list().some((each) => each.id === id);
    const found = isNew ? await sandboxes.find(id, signal) : undefined;
    const files = found ? undefined : kept.get(id);
    const sandbox = found ?? (await sandboxes.create(id, { given, signal, snapshot: files?.snapshot }));
    this.#lost ??= files?.problem;
    sandbox.executor.onSessionLost?.((reason) => {
      if (!this.#wasTold) this.#lost = reason;
      this.#wasTold = false;
    });
    return sandbox;
  }

  /** Remembers what an error says about the sandbox, since the model is told now. */
  #note(error: unknown): void {
    const isStopped = ExecutorStoppedError.isInstance(error);
    if (isStopped) this.#isStopped = true;
    if (!isStopped && !BackendUnavailableError.isInstance(error)) return;
    this.#generation += 1;
    this.#wasTold = this.#lost === undefined;
    this.#lost = undefined;
  }

  #tellLoss(name: string): void {
    const reason = this.#lost;
    if (reason === undefined) return;
    this.#lost = undefined;
    this.#generation += 1;
    throw new ToolError(
      `${name}: the sandbox was lost: ${reason} The next call works in a new one, which may be without its files and processes.`,
    );
  }

  async #close(): Promise<void> {
    const opening = this.#opening;
    this.#closing.abort(new ToolError("the session has ended"));
    if (opening === undefined) return;
    const ending = opening.then(
      (sandbox) => this.#end(sandbox),
      () => {},
    );
    await within(closeMs, ending);
  }

  async #end(sandbox: ExecutorSandbox): Promise<void> {
    const { sandboxes } = this.#parts;
    try {
      // What replaced a lost sandbox has nothing that the model knows of.
      if (sandboxes.hasSnapshots && this.#lost === undefined) await this.#keep(sandbox);
    } finally {
      await sandboxes.end(sandbox);
    }
  }

  async #keep(sandbox: ExecutorSandbox): Promise<void> {
    const { id, sandboxes, kept } = this.#parts;
    const before = kept.get(id)?.snapshot;
    kept.delete(id);
    try {
      const snapshot = await sandboxes.snapshot(sandbox, AbortSignal.timeout(keepMs));
      kept.set(id, { snapshot });
      if (before !== undefined && before !== snapshot) await sandboxes.store.delete(before);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!kept.has(id)) kept.set(id, { snapshot: before, problem: `its last files could not be kept: ${reason}` });
    }
    const [oldest] = kept.keys();
    if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
  }
}
