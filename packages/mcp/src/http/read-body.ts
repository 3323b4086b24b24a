import { ByteQueue, JsonLimitError, parseJson } from "@fenced/core";
import type { HeldBody } from "./held-bodies.ts";
import type { Refusal } from "./refuse.ts";

/** Maximum number of values in a request: each message of a batch, and each item of a list, is checked on its own. */
const mostValues = 10_000;

const tooManyBytes = {
  status: 429,
  message: "This user's open requests have too many bytes in total; wait for some to finish.",
};

/**
 * Reads the JSON in a request's body (`undefined` if its method has none), or returns why it is refused. Reads at most
 * the limit, and what the user has room for.
 */
export async function readBody(
  request: Request,
  maxBytes: number,
  held: HeldBody,
): Promise<{ readonly body: unknown } | { readonly refusal: Refusal }> {
  if (request.method !== "POST") return { body: undefined };
  const bytes = new ByteQueue();
  // On some servers, cancelling the stream would close the connection, and with it the response.
  for await (const chunk of request.body?.values({ preventCancel: true }) ?? []) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("A request's body must be bytes.");
    if (bytes.length + chunk.byteLength > maxBytes) {
      return { refusal: { status: 413, message: `The request is larger than ${maxBytes} bytes, the server's limit.` } };
    }
    if (!held.add(chunk.byteLength)) return { refusal: tooManyBytes };
    bytes.add(chunk);
  }
  try {
    return { body: parseJson(bytes.take(), { maxValues: mostValues }) };
  } catch (error) {
    if (error instanceof JsonLimitError) {
      return { refusal: { status: 413, message: `The request is ${error.message}, the server's limit.` } };
    }
    return { refusal: { status: 400, code: -32_700, message: "The request's body is not valid JSON." } };
  }
}
