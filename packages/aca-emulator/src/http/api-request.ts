import type { FileHandle } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { GrowingBytes } from "../growing-bytes.ts";
import type { RuntimeFacts } from "../runtime-facts.ts";
import { ServiceFailure } from "../service-failure.ts";
import type { SessionPool } from "../sessions/session-pool.ts";
import type { PoolType } from "../sessions/session-process.ts";
import { jsonOf } from "./json-text.ts";

/** The emulated pool: its sessions, and how it behaves. */
export interface EmulatedPool {
  readonly sessions: SessionPool;
  readonly poolType: PoolType;
  readonly syncLimitSeconds: number;
  readonly outputLimit: number;
  readonly pageSize: number;
  readonly wrappedBodies: boolean;
  readonly createdAt: Date;
  readonly facts: RuntimeFacts;
}

/** A request that has passed the checks for all requests. */
export interface ApiRequest {
  readonly method: string;
  /** The parts of the path after the pool's address, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly identifier: string;
  /** The pool's address as the client knows it. */
  readonly endpoint: string;
  readonly message: IncomingMessage;
}

/** The answer to a request. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** A file to send instead; closed in any case. */
  readonly file?: FileHandle;
}

/** The largest body that is not a file, in bytes. */
const bodyLimit = 64 * 1024 * 1024;

/** The largest number of values in a body. */
const mostValues = 100_000;

/** @throws ServiceFailure if the body is not a JSON object. */
export async function readJsonObject(message: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const body: unknown = await readJson(message);
  if (isObject(body)) return body;
  throw new ServiceFailure(400, "InvalidRequestBody", "The body is not a JSON object.");
}

/** @throws ServiceFailure if the body is not JSON. */
export async function readJson(message: IncomingMessage): Promise<unknown> {
  const bytes = new GrowingBytes();
  for await (const piece of message) {
    if (!Buffer.isBuffer(piece)) continue;
    if (bytes.length + piece.length > bodyLimit) {
      throw new ServiceFailure(413, "RequestTooLarge", "The body is too large.");
    }
    bytes.add(piece);
  }
  try {
    const text = bytes.take().toString("utf8");
    if (hasFewValues(text, mostValues)) return JSON.parse(text);
  } catch {
    throw new ServiceFailure(400, "InvalidRequestBody", "The body is not JSON.");
  }
  throw new ServiceFailure(413, "RequestTooLarge", "The body has too many values.");
}

/** Whether JSON has at most `most` values: as objects, those of a long text would take gigabytes. */
export function hasFewValues(json: string, most: number): boolean {
  let [values, isString] = [0, false];
  for (let at = 0; at < json.length && values <= most; at += 1) {
    const character = json.charAt(at);
    if (character === '"') isString = !isString;
    else if (isString && character === "\\") at += 1;
    else if (!isString && ",[{".includes(character)) values += 1;
  }
  return values <= most;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The answer to a path or a method that the API does not have. */
export function unknownOperation({ method, path }: Pick<ApiRequest, "method" | "path">): ServiceFailure {
  return new ServiceFailure(404, "OperationNotFound", `This API version has no ${method} ${path.join("/")}.`);
}

/** Sends an answer; waits until it is sent or the client is gone. */
export async function sendAnswer(response: ServerResponse, answer: Answer): Promise<void> {
  if (answer.file) {
    await sendFile(response, answer.file, answer);
    return;
  }
  const body = answer.body === undefined ? "" : jsonOf(answer.body);
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(body === "" ? {} : { "content-type": "application/json; charset=utf-8" }),
    "content-length": String(Buffer.byteLength(body)),
  });
  response.end(body);
}

/** Turns a failure into an answer. */
export function failureAnswer(error: unknown): Answer {
  const failure =
    error instanceof ServiceFailure
      ? error
      : new ServiceFailure(500, "InternalServerError", error instanceof Error ? error.message : String(error));
  const { status, headers, code, message } = failure;
  if (code === undefined) return { status, headers };
  return { status, headers: { ...headers, "x-ms-error-code": code }, body: { error: { code, message } } };
}

async function sendFile(response: ServerResponse, file: FileHandle, { status, headers }: Answer): Promise<void> {
  try {
    const { size } = await file.stat();
    response.writeHead(status, {
      ...headers,
      "content-type": "application/octet-stream",
      "content-length": String(size),
    });
    // Anything that the code appends in the meantime would exceed the announced length.
    if (size > 0) await pipeline(file.createReadStream({ start: 0, end: size - 1 }), response);
    else response.end();
  } catch {
    // The client is gone, or the file became shorter: the connection can only be closed.
    response.destroy();
  } finally {
    await file.close().catch(() => {});
  }
}
