import * as z from "zod";
import {
  checkOptions,
  optionsSchema,
  type OptionSchemas,
  callbackOption,
  signalOption,
  timeLimitOption,
} from "../options/check-options.ts";
import { endOfStream } from "./end-of-stream.ts";
import { errorToJson } from "./json-error.ts";
import { toJson } from "./to-json.ts";

/** Options of `eventStreamResponse`; all are optional. */
export interface EventStreamOptions {
  /**
   * Milliseconds of silence before a comment is sent to keep proxies from closing the connection. `Infinity`: never.
   * Default: 15,000.
   */
  readonly heartbeatMs?: number | undefined;
  /**
   * The request's signal; when it is aborted, the stream ends, and with it what is running. Default: only the end of
   * the response ends it.
   */
  readonly signal?: AbortSignal | undefined;
  /** Headers to send besides those of server-sent events. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Receives the full error of a stream that throws; the client gets only its `toJson`. Default: ignored. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const eventStreamOptions: z.ZodType<EventStreamOptions> = optionsSchema({
  heartbeatMs: timeLimitOption.exactOptional(),
  signal: signalOption.exactOptional(),
  headers: z.record(z.string(), z.string()).exactOptional(),
  onError: callbackOption<(error: unknown) => void>().exactOptional(),
} satisfies OptionSchemas<EventStreamOptions>);

/**
 * Sends a stream as server-sent events: each item becomes one event whose data is its `toJson`; an error becomes the
 * last event, of type `error`. After the last item comes an event named `end`, so that a reader can tell a whole stream
 * from one that a proxy cut off. A client that reads slowly makes the stream, and the code it runs, wait. When the client
 * disconnects, or `signal` is aborted, the stream is closed, which kills what is running.
 *
 * Returns a standard response: Hono, Next.js, Deno and Bun accept it as it is; with Fastify 5, use `reply.send`.
 *
 * @param stream - `streamCodeBlocks`, `runStream`, or any other stream. For a stream that does not end when it is
 * closed, pass a function that opens it; it receives a signal that is aborted when the client disconnects.
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * app.post("/run", async (context) =>
 *   eventStreamResponse(executor.streamCodeBlocks(await blocksOf(context)), { signal: context.req.raw.signal }),
 * );
 */
export function eventStreamResponse(
  stream: AsyncIterable<object> | ((signal: AbortSignal) => AsyncIterable<object>),
  options: EventStreamOptions = {},
): Response {
  const checked = checkOptions(eventStreamOptions, options, "eventStreamResponse");
  const left = new AbortController();
  const items = typeof stream === "function" ? stream(left.signal) : stream;
  return new Response(new ReadableStream(new EventSource(items, left, checked)), {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // Nginx would buffer events until it has several kilobytes.
      "x-accel-buffering": "no",
      ...checked.headers,
    },
  });
}

const encoder = new TextEncoder();

/** Turns items into events, one each time the response has room. */
class EventSource {
  readonly #items: AsyncIterator<object>;
  readonly #left: AbortController;
  readonly #options: EventStreamOptions;
  #ended = false;

  constructor(items: AsyncIterable<object>, leaving: AbortController, options: EventStreamOptions) {
    this.#items = items[Symbol.asyncIterator]();
    this.#left = leaving;
    this.#options = options;
    if (options.signal?.aborted === true) this.#abort();
    else options.signal?.addEventListener("abort", this.#abort, { once: true });
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const stopBeating = this.#beat(controller);
    try {
      const step = await this.#next();
      if (step.done === true) this.#complete(controller);
      else send(controller, JSON.stringify(toJson(step.value)));
    } catch (error) {
      this.#fail(controller, error);
    } finally {
      stopBeating();
    }
  }

  /** The client disconnected. */
  async cancel(reason: unknown): Promise<void> {
    this.#ended = true;
    this.#left.abort(reason);
    await this.#leave();
  }

  // The reader of an aborted stream may be gone and never pull again: end what is running at once.
  readonly #abort = (): void => {
    this.#left.abort(this.#options.signal?.reason);
    this.#leave().catch((error: unknown) => this.#options.onError?.(error));
  };

  /**
   * Returns the next item; once the stream is closed, rejects with the reason even if the stream itself does not
   * notice.
   */
  #next(): Promise<IteratorResult<object>> {
    const { signal } = this.#left;
    return new Promise((resolve, reject) => {
      // The reason is whatever the caller chose.
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors
      const leave = (): void => reject(signal.reason);
      if (signal.aborted) {
        leave();
        return;
      }
      signal.addEventListener("abort", leave, { once: true });
      this.#items
        .next()
        .then(resolve, reject)
        .finally(() => signal.removeEventListener("abort", leave));
    });
  }

  async #leave(): Promise<void> {
    this.#options.signal?.removeEventListener("abort", this.#abort);
    await this.#items.return?.();
  }

  #fail(controller: ReadableStreamDefaultController<Uint8Array>, error: unknown): void {
    // An item that could not be sent may come from a stream that is still running.
    this.#leave().catch(() => {});
    // A client that disconnected gets nothing more, and the response is already closed.
    if (this.#ended) return;
    if (!this.#left.signal.aborted) this.#options.onError?.(error);
    send(controller, JSON.stringify(errorToJson(error)));
    this.#end(controller);
  }

  #complete(controller: ReadableStreamDefaultController<Uint8Array>): void {
    if (this.#ended) return;
    controller.enqueue(encoder.encode(`event: ${endOfStream.event}\ndata: ${endOfStream.data}\n\n`));
    this.#end(controller);
  }

  #end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#options.signal?.removeEventListener("abort", this.#abort);
    controller.close();
  }

  /** Sends comments while nothing else is sent, as long as the client reads them. */
  #beat(controller: ReadableStreamDefaultController<Uint8Array>): () => void {
    const { heartbeatMs = 15_000 } = this.#options;
    if (heartbeatMs === Infinity) return () => {};
    const timer = setInterval(
      () => {
        if (!this.#ended && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(":\n\n"));
      },
      Math.min(heartbeatMs, 2_147_483_647),
    );
    return () => clearInterval(timer);
  }
}

function send(controller: ReadableStreamDefaultController<Uint8Array>, data: string): void {
  controller.enqueue(encoder.encode(`data: ${data}\n\n`));
}
