import { createParser, type EventSourceMessage } from "eventsource-parser";
import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { FencedError } from "../errors/fenced-error.ts";
import { JsonLimitError, parseJson } from "../parse-json.ts";
import { endOfStream } from "./end-of-stream.ts";
import { fromJson } from "./from-json.ts";

/** A result is sent as one event, and its displays may have 256 MiB, which become 342 MiB as base64. */
const maxEventCharacters = 402_653_184;
/** More than the displays of a result may have, whose values count by their memory. */
const maxEventValues = 8_000_000;
const maxRefusalBytes = 65_536;

/**
 * Reads what `eventStreamResponse` sends, in a browser or in Node: yields each event through `fromJson`, and throws the
 * error that ended the stream on the server. Leaving the loop early closes the connection, which ends what is running.
 *
 * @throws the server's error; `BackendUnavailableError` if the response is not a stream of events, or ended before the
 * stream did: the server or a proxy closed the connection. What was running has then ended too.
 * @throws the reason of the request's signal if it was aborted.
 *
 * @example
 * for await (const event of readEventStream(await fetch("/run", { method: "POST", body }))) show(event);
 */
export async function* readEventStream(response: Response): AsyncGenerator<object, void, void> {
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || !type.startsWith("text/event-stream")) throw await refusal(response);
  for await (const { event, data } of eventsOf(response.body)) {
    if (event === endOfStream.event) return;
    const item = itemOf(data);
    if (item instanceof Error) throw item;
    if (typeof item === "object" && item !== null) yield item;
  }
  throw cutOff();
}

/** Yields the events of a body as the standard defines them; an incomplete last event is not one. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events: EventSourceMessage[] = [];
  const overflow: Error[] = [];
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent: (event) => void events.push(event),
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") overflow.push(error);
    },
  });
  const lines = new LineEnds();
  try {
    for (let done = false; !done;) {
      const step = await read(reader);
      ({ done } = step);
      parser.feed(lines.unify(decoder.decode(step.value, { stream: true })));
      yield* events.splice(0);
      if (overflow.length > 0) throw unreadable(`an event of more than ${maxEventCharacters} characters`);
    }
  } finally {
    // A body that failed has nothing to cancel.
    await reader.cancel().catch(() => {});
  }
}

/**
 * Makes all line ends the same. The parser would search each piece with a carriage return again and again, which takes
 * minutes for a megabyte of short lines, and it would not see a line end in a carriage return that ends a piece.
 */
class LineEnds {
  #afterReturn = false;

  unify(text: string): string {
    if (text === "") return text;
    const rest = this.#afterReturn && text.startsWith("\n") ? text.slice(1) : text;
    this.#afterReturn = text.endsWith("\r");
    return rest.includes("\r") ? rest.replaceAll(/\r\n?/g, "\n") : rest;
  }
}

type Read = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Read> {
  try {
    return await reader.read();
  } catch (cause) {
    // An aborted request rejects with its own reason.
    if (!isConnectionError(cause)) throw cause;
    throw cutOff(cause);
  }
}

/** Node's fetch and all browsers report a connection that failed as a TypeError, Node's streams with a code. */
function isConnectionError(error: unknown): boolean {
  if (error instanceof TypeError) return true;
  return error instanceof Error && "code" in error && /^(?:E[A-Z]|UND_ERR)/.test(String(error.code));
}

function itemOf(data: string): unknown {
  try {
    return fromJson(parseJson(data, { maxValues: maxEventValues, maxNames: maxEventValues, maxDepth: Infinity }));
  } catch (cause) {
    if (FencedError.isInstance(cause)) throw cause;
    if (cause instanceof JsonLimitError) throw unreadable(`an event with ${cause.message}`, cause);
    throw unreadable(`an event that is not JSON (${JSON.stringify(data.slice(0, 80))})`, cause);
  }
}

function cutOff(cause?: unknown): BackendUnavailableError {
  return new BackendUnavailableError("The event stream ended early: the connection closed before the end was sent", {
    remedy:
      "What was running has ended; run it again. If it happens often, raise the time limits of proxies between this program and the server.",
    ...(cause === undefined ? {} : { cause }),
  });
}

function unreadable(what: string, cause?: unknown): BackendUnavailableError {
  return new BackendUnavailableError(`The event stream contained ${what}`, {
    remedy: "Read only streams that `eventStreamResponse` sends, with the same version of @fenced/core on both sides.",
    ...(cause === undefined ? {} : { cause }),
  });
}

async function refusal(response: Response): Promise<Error> {
  const text = await beginningOf(response.body);
  const answer = parsed(text);
  if (answer instanceof Error) return answer;
  return new BackendUnavailableError(`The server answered with status ${response.status}: ${text.slice(0, 1000)}`, {
    remedy: "Check the address and the server's log.",
  });
}

/** The beginning of a body: an answer that is not from the server may be of any size. */
async function beginningOf(body: ReadableStream<Uint8Array> | null): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  try {
    for (let done = false; !done && size < maxRefusalBytes;) {
      const step = await reader.read();
      ({ done } = step);
      size += step.value?.byteLength ?? 0;
      text += decoder.decode(step.value, { stream: true });
    }
  } catch {
    // The status says enough.
  } finally {
    await reader.cancel().catch(() => {});
  }
  return text;
}

function parsed(text: string): unknown {
  try {
    return fromJson(parseJson(text, { maxValues: 1000 }));
  } catch {
    return undefined;
  }
}
