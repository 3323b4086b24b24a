import {
  type ApproveHostCall,
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  type FollowOptions,
  followRun,
  type HostFunction,
  InvalidInputError,
  type SubmittedRun,
} from "@fenced/core";
import { afterMs, followSignals, untilAborted } from "@fenced/core/abort";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import { defaultAnswerAfterMs, defaultHeartbeatMs, type McpServerOptions } from "../mcp-server-options.ts";

/** What a tool gets with its arguments: the request, and the way to its client. */
export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** Options of code that runs. */
export interface RunningCodeOptions extends McpServerOptions {
  /** Functions that the code can call. */
  readonly functions: () => readonly HostFunction[];
  /** Decides about calls from code for which a request waits. */
  readonly approver: (extra: Extra) => ApproveHostCall;
}

/** How code ended, or the id of code that goes on and the end of its output so far. */
export type Waited = { readonly result: CodeResult } | { readonly id: string; readonly output: string };

/** Runs code for requests, which are answered after a while even if the code goes on. */
export class RunningCode {
  readonly #executor: CodeExecutor;
  readonly #options: RunningCodeOptions;
  /** Code whose request was answered before its end. */
  readonly #goingOn = new Map<string, Code>();

  constructor(executor: CodeExecutor, options: RunningCodeOptions) {
    this.#executor = executor;
    this.#options = options;
  }

  /** Begins a run, and waits for it for a while. */
  async begin(block: CodeBlock, extra: Extra): Promise<Waited> {
    const client = new WaitingClient(this.#options.heartbeatMs);
    // While no request waits for the code, a call of a function waits for one, since only its client can be asked.
    const approve: ApproveHostCall = async (call) =>
      this.#options.approver(await untilAborted(client.extra, call.signal))(call);
    const functions = this.#options.functions().map((each) => ({ ...each, approve }));
    const run = await this.#executor.submit([block], functions.length > 0 ? { functions } : {});
    return this.#wait(new Code(run, client), extra);
  }

  /**
   * Waits for a run for a while.
   *
   * @throws InvalidInputError if no such run goes on.
   */
  async wait(id: string, extra: Extra): Promise<Waited> {
    return this.#wait(this.#find(id), extra);
  }

  /**
   * Ends a run with everything that it started.
   *
   * @throws InvalidInputError if no such run goes on.
   */
  async cancel(id: string): Promise<void> {
    const { run } = this.#find(id);
    await run.cancel();
    this.#goingOn.delete(id);
  }

  /** Keeps code for `wait`, and forgets the oldest that has ended if a model never asked for its result. */
  #remember(code: Code): void {
    this.#goingOn.set(code.run.id, code);
    for (const [id, { run }] of this.#goingOn) {
      if (this.#goingOn.size <= mostRemembered) break;
      if (run.state !== "running") this.#goingOn.delete(id);
    }
  }

  #find(id: string): Code {
    const code = this.#goingOn.get(id);
    if (code) return code;
    throw new InvalidInputError(`There is no running code with the id ${JSON.stringify(id)}`, {
      remedy: "Pass the id that run_code returned last; to run code, call run_code.",
    });
  }

  async #wait(code: Code, extra: Extra): Promise<Waited> {
    const { answerAfterMs = defaultAnswerAfterMs } = this.#options;
    const { run, client } = code;
    const ending = new AbortController();
    const unfollow = followSignals(ending, [extra.signal]);
    const cancel = afterMs(answerAfterMs, () => ending.abort(enough));
    const leave = client.enter(extra);
    // Another request for the same code gets the same answer.
    this.#remember(code);
    try {
      const result = await untilAborted(run.result(), ending.signal);
      this.#goingOn.delete(run.id);
      return { result };
    } catch (error) {
      if (error === enough) return { id: run.id, output: code.output };
      this.#goingOn.delete(run.id);
      // Whoever cancels the request means the code.
      if (extra.signal.aborted) await run.cancel();
      throw error;
    } finally {
      cancel();
      unfollow();
      leave();
    }
  }
}

/** How much code is remembered that nobody waits for. */
const mostRemembered = 100;

const enough = new DOMException("The request is answered before the code has ended", "AbortError");

/** A run and whoever waits for it. */
class Code {
  readonly run: SubmittedRun;
  readonly client: WaitingClient;
  /** What was printed so far, or the end of that. */
  output = "";

  constructor(run: SubmittedRun, client: WaitingClient) {
    this.run = run;
    this.client = client;
    const follow = (options: FollowOptions): void => void followRun(run, options).catch(() => {});
    follow({ onProgress: (text) => client.tell(text) });
    follow({ onProgress: (text) => (this.output = text), cumulative: true });
  }
}

/** The request that waits for code, and what its client is told meanwhile. */
class WaitingClient {
  readonly #heartbeatMs: number;
  #heart: NodeJS.Timeout | undefined;
  #current: Extra | undefined;
  #progress = 0;
  #wake: (extra: Extra) => void = () => {};
  #next: Promise<Extra> | undefined;

  constructor(heartbeatMs = defaultHeartbeatMs) {
    this.#heartbeatMs = heartbeatMs;
  }

  /** Resolves to the request that waits, or to the next one. */
  get extra(): Promise<Extra> {
    if (this.#current) return Promise.resolve(this.#current);
    return (this.#next ??= new Promise((resolve) => {
      this.#wake = resolve;
    }));
  }

  /** A request begins to wait. Returns a function to call when it no longer does. */
  enter(extra: Extra): () => void {
    this.#current = extra;
    this.#progress = 0;
    this.#wake(extra);
    this.#next = undefined;
    const startedAt = performance.now();
    const seconds = (): number => Math.round((performance.now() - startedAt) / 1000);
    clearInterval(this.#heart);
    // Also while the executor starts, which may pull an image.
    const heart = setInterval(() => this.#send(`Still running, after ${seconds()} s.`), this.#heartbeatMs);
    this.#heart = heart;
    return () => {
      clearInterval(heart);
      if (this.#current === extra) this.#current = undefined;
    };
  }

  /** Passes on what was printed, if a client wants progress. */
  tell(text: string): void {
    this.#heart?.refresh();
    this.#send(text);
  }

  #send(message: string): void {
    const { sendNotification, _meta } = this.#current ?? {};
    const progressToken = _meta?.progressToken;
    if (progressToken === undefined) return;
    this.#progress += 1;
    const params = { progressToken, progress: this.#progress, message };
    // Ignore a client that has disconnected; its request's signal aborts.
    sendNotification?.({ method: "notifications/progress", params }).catch(() => {});
  }
}
