import { createParser, type EventSourceMessage } from "eventsource-parser";
import type * as z from "zod";
import { afterMs, untilAborted } from "../abort/until-aborted.ts";
import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { FencedError } from "../errors/fenced-error.ts";
import {
  callbackOption,
  checkOptions,
  optionsSchema,
  type OptionSchemas,
  signalOption,
} from "../options/check-options.ts";
import { JsonLimitError, parseJson } from "../parse-json.ts";
import { endOfStream } from "./end-of-stream.ts";
import { fromJson } from "./from-json.ts";

/** A result is sent as one event, and its displays may have 256 MiB, which become 342 MiB as base64. */
const maxEventCharacters = 402_653_184;
/** More than the displays of a result may have, whose values count by their memory. */
const maxEventValues = 8_000_000;
const maxRefusalBytes = 65_536;
/** Lines between two events that are no part of an event: each takes microseconds, and a server can send millions. */
const mostOtherLines = 10_000;

/** How often a lost connection is made again without an event in between, and the longest wait between two attempts. */
const [mostAttempts, longestWaitMs] = [12, 10_000];

/** Options of `readEventStream`; all are optional. */
export interface ReadEventStreamOptions {
  /**
   * Asks for the rest of a submitted run's events after the connection was lost: sends the id in the header
   * `Last-Event-ID`. Needed if the address needs headers, such as a token, or the events did not come from a GET request.
   * Default: a GET request to the response's address.
   */
  readonly reconnect?: ((lastEventId: string) => Promise<Response>) | undefined;
  /** Ends the reading, and the wait for a new connection; the loop then throws its reason. Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
}

const readOptions: z.ZodType<ReadEventStreamOptions> = optionsSchema({
  reconnect: callbackOption<(lastEventId: string) => Promise<Response>>().exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ReadEventStreamOptions>);

/**
 * Reads what `eventStreamResponse` sends, in a browser or in Node: yields each event through `fromJson`, and throws the
 * error that ended the stream on the server. Leaving the loop early closes the connection, which ends what is running,
 * unless it is a submitted run.
 *
 * The events of a submitted run have ids: if the connection is lost, this connects again and goes on after the last
 * event that came. It gives up if no event comes for more than a minute of attempts.
 *
 * @throws the server's error; `BackendUnavailableError` if the response is not a stream of events, or ended before the
 * stream did: the server or a proxy closed the connection. What was running has then ended too, unless it is a submitted
 * run.
 * @throws the reason of the request's signal, or of `options.signal`, if it was aborted.
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * for await (const event of readEventStream(await fetch("/run", { method: "POST", body }))) show(event);
 */
export async function* readEventStream(
  response: Response,
  options: ReadEventStreamOptions = {},
): AsyncGenerator<object, void, void> {
  const { reconnect = getAgain(response), signal } = checkOptions(readOptions, options, "readEventStream");
  if (response.body === null || !isEventStream(response)) throw await refusal(response);
  let { body } = response;
  let lastEventId: string | undefined;
  const attempts = new Attempts(reconnect, signal);
  for (;;) {
    let lost: unknown;
    const events = eventsOf(body, signal);
    try {
      for (let step = await next(events); ; step = await next(events)) {
        if ("lost" in step) {
          ({ lost } = step);
          break;
        }
        const { event, data, id } = step;
        if (event === endOfStream.event) return;
        attempts.succeeded();
        if (id !== undefined) lastEventId = id;
        const item = itemOf(data);
        if (item instanceof Error) throw item;
        if (typeof item === "object" && item !== null) yield item;
      }
    } finally {
      await events.return();
    }
    if (lastEventId === undefined) throw cutOff(lost, false);
    const again = await attempts.next(lastEventId, lost);
    if (again.status === 204) return;
    if (again.body === null || !isEventStream(again)) throw await refusal(again);
    ({ body } = again);
  }
}

/** The next event; `lost`: the connection was lost, with its error if there is one. */
async function next(
  events: AsyncGenerator<EventSourceMessage, void, void>,
): Promise<EventSourceMessage | { readonly lost: unknown }> {
  try {
    return (await events.next()).value ?? { lost: undefined };
  } catch (error) {
    // An aborted request rejects with its own reason.
    if (!isConnectionError(error)) throw error;
    return { lost: error };
  }
}

/** Requests the same address once more; `undefined` if it is not known. */
function getAgain({ url }: Response): ReadEventStreamOptions["reconnect"] {
  if (url === "") return undefined;
  return (lastEventId) => fetch(url, { headers: { accept: "text/event-stream", "last-event-id": lastEventId } });
}

function isEventStream({ ok, headers }: Response): boolean {
  return ok && (headers.get("content-type") ?? "").startsWith("text/event-stream");
}

/** Attempts to connect again, which are counted until an event arrives. */
class Attempts {
  readonly #reconnect: ReadEventStreamOptions["reconnect"];
  readonly #signal: AbortSignal | undefined;
  #count = 0;

  constructor(reconnect: ReadEventStreamOptions["reconnect"], signal: AbortSignal | undefined) {
    this.#reconnect = reconnect;
    this.#signal = signal;
  }

  /** An event arrived. */
  succeeded(): void {
    this.#count = 0;
  }

  /**
   * Connects again, and returns the server's answer.
   *
   * @param lost - why the connection was lost, if that is known.
   * @throws BackendUnavailableError if nobody answers, or it is not known how to connect.
   */
  async next(lastEventId: string, lost: unknown): Promise<Response> {
    let cause = lost;
    while (this.#reconnect && this.#count < mostAttempts) {
      await pause(Math.min(250 * 2 ** this.#count, longestWaitMs), this.#signal);
      this.#count += 1;
      try {
        const response = await untilAborted(this.#reconnect(lastEventId), this.#signal);
        // A proxy whose server restarts answers with 502 or 503.
        if (response.status < 500 && response.status !== 429) return response;
        cause = await refusal(response);
      } catch (error) {
        if (!isConnectionError(error)) throw error;
        cause = error;
      }
    }
    throw cutOff(cause, true);
  }
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  let cancel: () => void = () => {};
  const over = new Promise<void>((resolve) => {
    cancel = afterMs(milliseconds, resolve);
  });
  try {
    await untilAborted(over, signal);
  } finally {
    cancel();
  }
}

/** Yields the events of a body as the standard defines them; an incomplete last event is not one. */
async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<EventSourceMessage, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events: EventSourceMessage[] = [];
  let others = 0;
  let problem: string | undefined;
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent: (event) => {
      others = 0;
      events.push(event);
    },
    onError: (error) => {
      others += 1;
      if (error.type === "max-buffer-size-exceeded") problem = `an event of more than ${maxEventCharacters} characters`;
      else if (others > mostOtherLines) problem = `more than ${mostOtherLines} lines that are not part of an event`;
    },
  });
  const lines = new LineEnds();
  try {
    for (let done = false; !done;) {
      const step = await untilAborted(reader.read(), signal);
      ({ done } = step);
      parser.feed(lines.unify(decoder.decode(step.value, { stream: true })));
      yield* events.splice(0);
      if (problem !== undefined) throw unreadable(problem);
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

function cutOff(cause: unknown, goesOn: boolean): BackendUnavailableError {
  const remedy = goesOn
    ? "The run may go on: read its events again, or ask the server for its result."
    : "What was running has ended; run it again. If it happens often, raise the time limits of proxies between this program and the server.";
  return new BackendUnavailableError("The event stream ended early: the connection closed before the end was sent", {
    remedy,
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
