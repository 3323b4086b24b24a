import {
  BackendUnavailableError,
  ExecutorStoppedError,
  InvalidInputError,
  JsonLimitError,
  type JsonValue,
  parseJson,
} from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import * as z from "zod";
import { breakingBody } from "./breaking-body.ts";
import { ConnectError } from "./connect-error.ts";
import { envelope } from "./envelope.ts";
import { BodyRefusal, readBody } from "./read-body.ts";

/** A message that ends a stream. */
const endFlag = 2;

/** Bytes in a message: base64. */
export const bytesSchema: z.ZodType<Uint8Array> = z
  .base64()
  .transform((text): Uint8Array => Buffer.from(text, "base64"));

/** What a call gets besides its message. */
export interface Call {
  /** Aborted when the client has gone, or the sandbox has ended. */
  readonly signal: AbortSignal;
  readonly headers: Headers;
}

/** What calls need of their sandbox. */
export interface Callee {
  /** Aborted when the sandbox has ended. */
  readonly signal: AbortSignal;
  /** Takes errors that clients only know as "internal error". */
  readonly report: (error: unknown) => void;
}

/** Answers one request with one message. */
export async function unary<T>(
  request: Request,
  { report }: Callee,
  schema: z.ZodType<T>,
  handle: (message: T) => Promise<JsonValue>,
): Promise<Response> {
  try {
    using body = await readBody(request);
    return Response.json(await handle(check(schema, parse(body.bytes))));
  } catch (error) {
    const problem = toConnectError(error, request.signal, report);
    return Response.json(problem, { status: problem.status });
  }
}

/**
 * Answers one request with a stream of messages. An error is its last message; only the end of the sandbox breaks the
 * connection, by which clients notice it.
 */
export async function serverStream<T>(
  request: Request,
  { signal: ended, report }: Callee,
  schema: z.ZodType<T>,
  handle: (message: T, call: Call) => AsyncIterable<JsonValue>,
): Promise<Response> {
  // Before the response: some clients take a broken connection for an end if it was not to be used again, as after an
  // unread request.
  const answer = await readBody(request).catch((error: unknown) => toConnectError(error, request.signal, report));
  const leaving = new AbortController();
  const signal = joinSignals(request.signal, ended, leaving.signal);
  const messages = async function* (): AsyncGenerator<Uint8Array, void, void> {
    try {
      if (answer instanceof ConnectError) throw answer;
      const message = check(schema, openEnvelope(answer.bytes));
      for await (const each of handle(message, { signal, headers: request.headers })) yield envelope(0, each);
      ended.throwIfAborted();
      yield envelope(endFlag, {});
    } catch (error) {
      ended.throwIfAborted();
      yield envelope(endFlag, { error: toConnectError(error, signal, report).toJSON() });
    }
  };
  const received = answer instanceof ConnectError ? undefined : answer;
  const body = breakingBody({ pieces: messages(), ended, leaving, received });
  return new Response(body, { headers: { "content-type": "application/connect+json" } });
}

/**
 * What a client may know of an error. Everything else is reported, unless the client has gone: then it is about that.
 */
export function toConnectError(error: unknown, gone: AbortSignal, report: Callee["report"]): ConnectError {
  if (error instanceof ConnectError) return error;
  if (error instanceof BodyRefusal) return new ConnectError("resource_exhausted", error.message);
  if (InvalidInputError.isInstance(error)) return new ConnectError("invalid_argument", error.message, { cause: error });
  if (ExecutorStoppedError.isInstance(error) || BackendUnavailableError.isInstance(error)) {
    return new ConnectError("unavailable", error.message, { cause: error });
  }
  if (!gone.aborted) report(error);
  return new ConnectError("internal", "Internal error; see the server's log", { cause: error });
}

function parse(bytes: Uint8Array): unknown {
  try {
    return bytes.length === 0 ? {} : parseJson(bytes);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof JsonLimitError)) throw error;
    throw new ConnectError("invalid_argument", "The request's body is not valid JSON");
  }
}

function openEnvelope(bytes: Uint8Array): unknown {
  if (bytes.length < 5) throw badEnvelope();
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
  if (bytes[0] !== 0 || length !== bytes.length - 5) throw badEnvelope();
  return parse(bytes.subarray(5));
}

function badEnvelope(): ConnectError {
  return new ConnectError("invalid_argument", "The request is not one uncompressed message of the Connect protocol");
}

function check<T>(schema: z.ZodType<T>, message: unknown): T {
  const checked = schema.safeParse(message);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  throw new ConnectError("invalid_argument", `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "wrong"}`);
}
