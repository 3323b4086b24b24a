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
  /** Code of which no request has got the end yet. */
  readonly #goingOn = new Map<string, Code>();

  constructor(executor: CodeExecutor, options: RunningCodeOptions) {
    this.#executor = executor;
    this.#options = options;
  }

  /** Begins a run, and waits for it for a while. */
  async begin(block: CodeBlock, extra: Extra): Promise<Waited> {
    const client = new WaitingRequests(this.#options.heartbeatMs);
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
      // A cancelled request means the code, unless another one waits for it.
      const isLast = leave() === 0;
      if (extra.signal.aborted && isLast) await run.cancel();
      if (isLast) this.#goingOn.delete(run.id);
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

/** A run and the requests that wait for it. */
class Code {
  readonly run: SubmittedRun;
  readonly client: WaitingRequests;
  /** What was printed so far, or the end of that. */
  output = "";

  constructor(run: SubmittedRun, client: WaitingRequests) {
    this.run = run;
    this.client = client;
    const follow = (options: FollowOptions): void => void followRun(run, options).catch(() => {});
    follow({ onProgress: (text) => client.tell(text) });
    follow({ onProgress: (text) => (this.output = text), cumulative: true });
  }
}

/** What a waiting request's client was told. */
interface Told {
  progress: number;
  heart: NodeJS.Timeout;
}

/** The requests that wait for code, and what their clients are told meanwhile. */
class WaitingRequests {
  readonly #heartbeatMs: number;
  readonly #waiting = new Map<Extra, Told>();
  #wake: (extra: Extra) => void = () => {};
  #next: Promise<Extra> | undefined;

  constructor(heartbeatMs = defaultHeartbeatMs) {
    this.#heartbeatMs = heartbeatMs;
  }

  /** Resolves to a request that waits, or to the next one. */
  get extra(): Promise<Extra> {
    const [waiting] = this.#waiting.keys();
    if (waiting) return Promise.resolve(waiting);
    return (this.#next ??= new Promise((resolve) => {
      this.#wake = resolve;
    }));
  }

  /** A request begins to wait. Returns a function that ends this, and returns how many others wait. */
  enter(extra: Extra): () => number {
    const startedAt = performance.now();
    const seconds = (): number => Math.round((performance.now() - startedAt) / 1000);
    // Also while the executor starts, which may pull an image.
    const heart = setInterval(() => this.#send(extra, `Still running, after ${seconds()} s.`), this.#heartbeatMs);
    this.#waiting.set(extra, { progress: 0, heart });
    this.#wake(extra);
    this.#next = undefined;
    return () => {
      clearInterval(heart);
      this.#waiting.delete(extra);
      return this.#waiting.size;
    };
  }

  /** Passes on what was printed, to clients that want progress. */
  tell(text: string): void {
    for (const [extra, { heart }] of this.#waiting) {
      heart.refresh();
      this.#send(extra, text);
    }
  }

  #send(extra: Extra, message: string): void {
    const { sendNotification, _meta } = extra;
    const told = this.#waiting.get(extra);
    const progressToken = _meta?.progressToken;
    if (progressToken === undefined || !told) return;
    told.progress += 1;
    const params = { progressToken, progress: told.progress, message };
    // Ignore a client that has disconnected; its request's signal aborts.
    sendNotification({ method: "notifications/progress", params }).catch(() => {});
  }
}
