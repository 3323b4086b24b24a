import { ByteQueue, parseJson } from "@fenced/core";
import * as z from "zod";

const longestAnswer = 1_048_576;
const problemSchema = z.object({ message: z.string(), code: z.union([z.string(), z.number()]).optional() });

/** An answer of the service that is not what was asked for. */
export class ServiceProblem extends Error {
  /** The status of HTTP; 0 if the service said so in the middle of an answer. */
  readonly status: number;
  /** Seconds after which it asks to try again. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, retryAfter?: number) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/**
 * Reads an answer that is one JSON value.
 *
 * @returns `undefined` if there is none.
 * @throws ServiceProblem if the status says that something is wrong.
 */
export async function answerOf(response: Response): Promise<unknown> {
  const text = await textOf(response);
  if (response.ok) return text.trim() === "" ? undefined : parseJson(text);
  throw problemOf(response, text);
}

/** The error that an answer is. */
export async function problemIn(response: Response): Promise<ServiceProblem> {
  return problemOf(response, await textOf(response));
}

function problemOf({ status, headers }: Response, text: string): ServiceProblem {
  const after = Number(headers.get("retry-after") ?? Number.NaN);
  return new ServiceProblem(status, `${status}: ${messageIn(text)}`, Number.isFinite(after) ? after : undefined);
}

/** What an answer says in words. */
function messageIn(text: string): string {
  try {
    const problem = problemSchema.safeParse(parseJson(text));
    if (problem.success) return problem.data.message.slice(0, 500);
  } catch {
    // A proxy on the way may have answered.
  }
  return text.trim().slice(0, 200) || "no reason given";
}

async function textOf({ body }: Response): Promise<string> {
  const bytes = new ByteQueue();
  const pieces: AsyncIterable<Uint8Array> = body ?? ReadableStream.from<Uint8Array>([]);
  for await (const piece of pieces) {
    bytes.add(piece);
    if (bytes.length > longestAnswer) throw new Error("the service's answer is too long");
  }
  return Buffer.from(bytes.take()).toString();
}
