import type { FileHandle } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { ServiceFailure } from "../service-failure.ts";

/** A request that has passed the checks which all requests have to pass. */
export interface ApiRequest {
  readonly method: string;
  /** The parts of the path behind the pool's address, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly identifier: string;
  /** The pool's address, as the client knows it. */
  readonly endpoint: string;
  readonly message: IncomingMessage;
}

/** What is sent back. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** A file to send instead; closed when it is sent, or not. */
  readonly file?: FileHandle;
}

/** The largest body that is not a file, in bytes. */
const bodyLimit = 64 * 1024 * 1024;

/** @throws ServiceFailure if the body is not a JSON object. */
export async function readJsonObject(message: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const body: unknown = await readJson(message);
  if (isObject(body)) return body;
  throw new ServiceFailure(400, "InvalidRequestBody", "The body is not a JSON object.");
}

/** @throws ServiceFailure if the body is not JSON. */
export async function readJson(message: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of message) {
    if (!Buffer.isBuffer(piece)) continue;
    length += piece.length;
    if (length > bodyLimit) throw new ServiceFailure(413, "RequestTooLarge", "The body is too large.");
    pieces.push(piece);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString("utf8"));
  } catch {
    throw new ServiceFailure(400, "InvalidRequestBody", "The body is not JSON.");
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The answer to a path or a method that the API does not have. */
export function unknownOperation({ method, path }: Pick<ApiRequest, "method" | "path">): ServiceFailure {
  return new ServiceFailure(404, "OperationNotFound", `There is no ${method} ${path.join("/")} in this API version.`);
}
