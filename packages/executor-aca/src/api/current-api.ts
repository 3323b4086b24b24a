import { randomUUID } from "node:crypto";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FileContent } from "@fenced/executor-kit";
import { firstPauseMs, longestPauseMs, retryAfter, type PoolCall, type PoolClient } from "../http/pool-client.ts";
import { ConnectionError, ServiceError } from "../http/service-error.ts";
import { multipartBody } from "./multipart-body.ts";
import {
  OutcomeUnknownError,
  answerLost,
  type ExecutionAnswer,
  type ExecutionOrder,
  type RemotePage,
  type SessionApi,
} from "./session-api.ts";
import {
  executionSchema,
  fileListSchema,
  storedSizeSchema,
  syncLimitSeconds,
  type WireExecution as Execution,
} from "./wire-types.ts";

/** Seconds added to the block's own limit for the service, so that this side ends the block first. */
const graceSeconds = 5;
const longestSeconds = 86_400;
const [firstPollMs, longestPollMs] = [50, 2000];

/** The current generation: `executions`, `files?path=`. */
export class CurrentApi implements SessionApi {
  readonly identifier: string;
  readonly hasDirectories = true;
  readonly #client: PoolClient;
  readonly #version: string;
  readonly #shell: boolean;

  constructor(
    client: PoolClient,
    identifier: string,
    { version, shell }: { readonly version: string; readonly shell: boolean },
  ) {
    this.#client = client;
    this.identifier = identifier;
    this.#version = version;
    this.#shell = shell;
  }

  async execute(order: ExecutionOrder): Promise<ExecutionAnswer> {
    const accepted = await this.#submit(order);
    try {
      return this.#answer(await this.#untilEnd(accepted, order.signal));
    } catch (error) {
      order.signal.throwIfAborted();
      if (order.repeatable) throw error;
      // The code may have run, whatever the service answers from now on, even if it says that the session is gone.
      const reason = error instanceof Error ? error.message : String(error);
      throw new OutcomeUnknownError(`The service accepted a block, but did not report how it ended (${reason})`, {
        cause: error,
      });
    }
  }

  async listDirectory(
    directory: string,
    cursor: RemotePage["next"],
    signal: AbortSignal | undefined,
  ): Promise<RemotePage> {
    const query = { ...this.#query(directory), ...cursor };
    const call = { method: "GET", path: ["files"], query, repeatable: true, signal } as const;
    const { value, nextLink } = await this.#client.json(call, fileListSchema);
    const entries = value.map(({ name, type, sizeInBytes }) => ({
      name,
      isDirectory: type?.toLowerCase() === "directory",
      size: sizeInBytes ?? 0,
    }));
    if (nextLink === null || nextLink === undefined || !URL.canParse(nextLink, this.#client.baseUrl.href)) {
      return { entries, next: undefined };
    }
    // Only the query is taken from the link: the token must not follow it to another host.
    return { entries, next: Object.fromEntries(new URL(nextLink, this.#client.baseUrl).searchParams) };
  }

  async readFile(file: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const call = { method: "GET", path: ["files", path.posix.basename(file), "content"], signal } as const;
    const query = this.#query(path.posix.dirname(file));
    return this.#client.send({ ...call, query, repeatable: true }, async ({ body }) => body);
  }

  async writeFile(file: string, content: FileContent, signal?: AbortSignal): Promise<number | undefined> {
    const query = this.#query(path.posix.dirname(file));
    const call = { method: "POST", path: ["files"], query, repeatable: true, signal } as const;
    const body = multipartBody(path.posix.basename(file), content);
    return this.#client.json({ ...call, ...body }, storedSizeSchema);
  }

  async removeFile(file: string, signal?: AbortSignal): Promise<void> {
    const call = { method: "DELETE", path: ["files", path.posix.basename(file)], repeatable: true, signal } as const;
    await this.#client.send({ ...call, query: this.#query(path.posix.dirname(file)) }, ({ body }) => body.dump());
  }

  #query(directory?: string): Record<string, string> {
    return {
      "api-version": this.#version,
      identifier: this.identifier,
      ...(directory === undefined || directory === "." ? {} : { path: directory }),
    };
  }

  /** Sends an order until the service has accepted it, or has failed for as long as calls are retried. */
  async #submit(order: ExecutionOrder): Promise<Execution> {
    const id = randomUUID();
    let giveUp = Infinity;
    for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
      try {
        return await this.#post(order, id);
      } catch (error) {
        order.signal.throwIfAborted();
        if (!leavesOpen(error)) throw error;
        const known = await this.#find(id, order, error);
        if (known) return known;
        giveUp = Math.min(giveUp, performance.now() + this.#client.retryForMs);
        const wait = Math.max(pause * (0.5 + Math.random()), retryAfter(error) ?? 0);
        if (performance.now() + wait > giveUp) throw error;
        await sleep(wait, undefined, { signal: order.signal }).catch(() => {});
        order.signal.throwIfAborted();
      }
    }
  }

  async #post(order: ExecutionOrder, id: string): Promise<Execution> {
    const call: Omit<PoolCall, "body"> = {
      method: "POST",
      path: ["executions"],
      query: this.#query(),
      headers: { "content-type": "application/json", "operation-id": id },
      repeatable: false,
      signal: order.signal,
    };
    for (;;) {
      const { wrapsBodies, refusesOutputLimit } = this.#client.habits;
      const fields = this.#fields(order, refusesOutputLimit);
      const body = JSON.stringify(wrapsBodies ? { properties: fields } : fields);
      try {
        const execution = await this.#client.json({ ...call, body: () => body }, executionSchema);
        this.#client.habits.keepsOperationIds ??= execution.id === id;
        return execution;
      } catch (error) {
        if (!(error instanceof ServiceError) || error.status !== 400) throw error;
        if (!wrapsBodies && error.code === "SessionPropertiesMissing") this.#client.habits.wrapsBodies = true;
        else if (!refusesOutputLimit && isAboutOutput(error)) this.#client.habits.refusesOutputLimit = true;
        else throw error;
      }
    }
  }

  #fields({ code, timeoutMs, maxOutput }: ExecutionOrder, withoutLimit: boolean): object {
    const seconds = Math.ceil(timeoutMs / 1000) + graceSeconds;
    return {
      ...(this.#shell ? { shellCommand: code } : { codeInputType: "Inline", code }),
      executionType: seconds > syncLimitSeconds ? "Asynchronous" : "Synchronous",
      timeoutInSeconds: Math.min(seconds, longestSeconds),
      ...(withoutLimit ? {} : { outputStreamsMaxLength: maxOutput }),
    };
  }

  /** Polls an execution until it has ended. */
  async #untilEnd(first: Execution, signal: AbortSignal): Promise<Execution> {
    let execution = first;
    for (let pause = firstPollMs; isUnderWay(execution); pause = Math.min(pause * 1.5, longestPollMs)) {
      await sleep(pause, undefined, { signal }).catch(() => {});
      signal.throwIfAborted();
      execution = await this.#get(first.id ?? "", signal);
    }
    return execution;
  }

  async #get(id: string, signal: AbortSignal): Promise<Execution> {
    const call = { method: "GET", path: ["executions", id], query: this.#query(), repeatable: true, signal } as const;
    return this.#client.json(call, executionSchema);
  }

  /**
   * Looks for an execution whose answer was lost.
   *
   * @returns `undefined` if the service never received it, so that it is safe to send it again.
   * @throws OutcomeUnknownError if there is no way to know.
   */
  async #find(id: string, order: ExecutionOrder, lost: unknown): Promise<Execution | undefined> {
    if (this.#client.habits.keepsOperationIds !== true) {
      if (order.repeatable) return undefined;
      throw new OutcomeUnknownError(`${answerLost}, and the pool does not keep operation ids`, { cause: lost });
    }
    try {
      return await this.#get(id, order.signal);
    } catch (error) {
      order.signal.throwIfAborted();
      if (error instanceof ServiceError && error.status === 404 && !error.isCapacity) return undefined;
      if (error instanceof ServiceError && error.isSessionGone && order.repeatable) throw error;
      throw new OutcomeUnknownError(`${answerLost}, and the service could not be asked`, { cause: error });
    }
  }

  #answer({ status, error, result }: Execution): ExecutionAnswer {
    const exitCode = this.#shell && /^\d+$/.test(status) ? Number(status) : undefined;
    return {
      succeeded: exitCode === undefined ? /^succe(?:ss|eded)$/i.test(status) : exitCode === 0,
      ...(exitCode === undefined ? {} : { exitCode }),
      stdout: result?.stdout ?? "",
      stderr: result?.stderr ?? "",
      result: result?.executionResult,
      ...(error ? { error: { code: error.code ?? "", message: error.message ?? "" } } : {}),
    };
  }
}

/** Whether the code may have run despite this error. */
function leavesOpen(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.sent;
  return error instanceof ServiceError && (error.status === 409 || !error.isRefusal);
}

function isUnderWay({ status }: Execution): boolean {
  return /^(?:notstarted|running|pending|accepted)$/i.test(status);
}

function isAboutOutput({ reason }: ServiceError): boolean {
  return /outputStreamsMaxLength/i.test(reason);
}
