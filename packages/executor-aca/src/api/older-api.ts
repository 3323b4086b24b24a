import type { FileContent } from "@fenced/executor-kit";
import type { PoolClient } from "../http/pool-client.ts";
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
  olderExecutionSchema,
  olderFileListSchema,
  olderVersion,
  storedSizeSchema,
  syncLimitSeconds,
} from "./wire-types.ts";

/** The generation of 2024-02-02-preview: synchronous executions, one flat directory, no later queries. */
export class OlderApi implements SessionApi {
  readonly identifier: string;
  readonly hasDirectories = false;
  readonly #client: PoolClient;
  readonly #query: Readonly<Record<string, string>>;

  constructor(client: PoolClient, identifier: string) {
    this.#client = client;
    this.identifier = identifier;
    this.#query = { "api-version": olderVersion, identifier };
  }

  async execute({ code, timeoutMs, repeatable, signal }: ExecutionOrder): Promise<ExecutionAnswer> {
    const properties = {
      codeInputType: "inline",
      executionType: "synchronous",
      code,
      timeoutInSeconds: Math.min(Math.ceil(timeoutMs / 1000) + 5, syncLimitSeconds),
    };
    const call = { method: "POST", path: ["code", "execute"], query: this.#query, repeatable, signal } as const;
    const headers = { "content-type": "application/json" };
    try {
      const body = (): string => JSON.stringify({ properties });
      const answer = await this.#client.json({ ...call, headers, body }, olderExecutionSchema);
      const { status, stdout, stderr, result } = answer.properties;
      const succeeded = /^succe(?:ss|eded)$/i.test(status);
      return { succeeded, stdout: stdout ?? "", stderr: stderr ?? "", result: result === "" ? null : result };
    } catch (error) {
      signal.throwIfAborted();
      const open = error instanceof ConnectionError ? error.sent : error instanceof ServiceError && !error.isRefusal;
      if (!open || repeatable) throw error;
      throw new OutcomeUnknownError(`${answerLost}, and this API version has no call to ask about it`, {
        cause: error,
      });
    }
  }

  async listDirectory(_: string, __: RemotePage["next"], signal: AbortSignal | undefined): Promise<RemotePage> {
    const call = { method: "GET", path: ["files"], query: this.#query, repeatable: true, signal } as const;
    const { value } = await this.#client.json(call, olderFileListSchema);
    const entries = value.map(({ properties }) => ({
      name: properties.filename,
      isDirectory: false,
      size: properties.size,
    }));
    return { entries, next: undefined };
  }

  async readFile(file: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const call = { method: "GET", path: ["files", "content", file], repeatable: true, signal } as const;
    return this.#client.send({ ...call, query: this.#query }, async ({ body }) => body);
  }

  async writeFile(file: string, content: FileContent, signal?: AbortSignal): Promise<number | undefined> {
    const call = { method: "POST", path: ["files", "upload"], query: this.#query, repeatable: true, signal } as const;
    return this.#client.json({ ...call, ...multipartBody(file, content) }, storedSizeSchema);
  }

  /** This API has no call for it, so the executor runs code. */
  async removeFile(file: string, signal: AbortSignal = new AbortController().signal): Promise<void> {
    const code = `__import__("os").remove(${JSON.stringify(`/mnt/data/${file}`)})`;
    const { succeeded, stderr } = await this.execute({
      code,
      timeoutMs: 60_000,
      maxOutput: 4096,
      repeatable: true,
      signal,
    });
    if (succeeded) return;
    throw new ServiceError(/FileNotFoundError/.test(stderr) ? 404 : 400, { code: "FileNotFound", reason: stderr });
  }
}
