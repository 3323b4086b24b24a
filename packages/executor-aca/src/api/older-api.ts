import type { PoolClient } from "../http/pool-client.ts";
import { header } from "../http/read-error.ts";
import { ConnectionError, ServiceError } from "../http/service-error.ts";
import { multipartBody } from "./multipart-body.ts";
import { readJson } from "./read-json.ts";
import {
  OutcomeUnknownError,
  answerLost,
  type ExecutionAnswer,
  type ExecutionOrder,
  type FileContent,
  type RemoteContent,
  type RemoteEntry,
  type SessionApi,
} from "./session-api.ts";
import { olderExecutionSchema, olderFileListSchema, olderVersion, syncLimitSeconds } from "./wire-types.ts";

/** The generation of 2024-02-02-preview: synchronous executions, one flat directory, nothing to ask afterwards. */
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
      const answer = await this.#client.send(
        { ...call, headers, body: () => JSON.stringify({ properties }) },
        (response) => readJson(response, olderExecutionSchema),
      );
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

  async listDirectory(): Promise<RemoteEntry[]> {
    const call = { method: "GET", path: ["files"], query: this.#query, repeatable: true } as const;
    const { value } = await this.#client.send(call, (response) => readJson(response, olderFileListSchema));
    return value.map(({ properties }) => ({ name: properties.filename, isDirectory: false, size: properties.size }));
  }

  async readFile(file: string, signal?: AbortSignal): Promise<RemoteContent> {
    const call = {
      method: "GET",
      path: ["files", "content", file],
      query: this.#query,
      repeatable: true,
      signal,
    } as const;
    return this.#client.send(call, async (response) => {
      const length = header(response, "content-length");
      return { length: length === undefined ? undefined : Number(length), bytes: response.body };
    });
  }

  async writeFile(file: string, content: FileContent, signal?: AbortSignal): Promise<void> {
    const call = { method: "POST", path: ["files", "upload"], query: this.#query, repeatable: true, signal } as const;
    await this.#client.send({ ...call, ...multipartBody(file, content) }, ({ body }) => body.dump());
  }

  /** This API has no call for it, so code does it. */
  async removeFile(file: string, signal: AbortSignal = new AbortController().signal): Promise<void> {
    const code = `import os as _fenced_os
_fenced_os.remove(_fenced_os.path.join("/mnt/data", ${JSON.stringify(file)}))
del _fenced_os`;
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
