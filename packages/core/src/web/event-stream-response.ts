import * as z from "zod";
import {
  checkOptions,
  optionsSchema,
  type OptionSchemas,
  callbackOption,
  signalOption,
  timeLimitOption,
} from "../options/check-options.ts";
import type { RunEvent, SubmittedRun } from "../runs/submitted-run.ts";
import { endOfStream } from "./end-of-stream.ts";
import { errorToJson } from "./json-error.ts";
import { toJson } from "./to-json.ts";

/** What `eventStreamResponse` needs of a request; a standard `Request` has it. */
export interface EventStreamRequest {
  readonly headers: { get(name: string): string | null };
  readonly signal?: AbortSignal | undefined;
}

/** Options of `eventStreamResponse`; all are optional. */
export interface EventStreamOptions {
  /**
   * Milliseconds of silence before a comment is sent to keep proxies from closing the connection. `Infinity`: never.
   * Default: 15,000.
   */
  readonly heartbeatMs?: number | undefined;
  /**
   * The request that is answered: its signal is used unless there is a `signal`, and for a submitted run its
   * `Last-Event-ID` says where a client that connects again goes on. Default: none.
   */
  readonly request?: EventStreamRequest | undefined;
  /**
   * The request's signal; when it is aborted, the stream ends, and with it what is running, unless it is a submitted
   * run. Default: only the end of the response ends it.
   */
  readonly signal?: AbortSignal | undefined;
  /** Headers to send besides those of server-sent events. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Receives the full error of a stream that throws; the client gets only its `toJson`. Default: ignored. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const eventStreamOptions: z.ZodType<EventStreamOptions> = optionsSchema({
  heartbeatMs: timeLimitOption.exactOptional(),
  request: z.custom<EventStreamRequest>(isRequest, "must be the Request that is answered").exactOptional(),
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
 * A submitted run goes on when its client leaves. Its events have ids, and a client that comes back with the header
 * `Last-Event-ID`, as browsers and `readEventStream` do by themselves, gets those that it has missed; if it has all of a run
 * that has ended, it gets status 204, which tells a browser to stop.
 *
 * Returns a standard response: Hono, Next.js, Deno and Bun accept it as it is; with Fastify 5, use `reply.send`.
 *
 * @param stream - `streamCodeBlocks`, `runStream`, a submitted run, or any other stream. For a stream that does not end
 * when it is closed, pass a function that opens it; it receives a signal that is aborted when the client disconnects.
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * app.post("/run", async (context) =>
 *   eventStreamResponse(executor.streamCodeBlocks(await blocksOf(context)), { signal: context.req.raw.signal }),
 * );
 * app.get("/runs/:id", (context) =>
 *   eventStreamResponse(executor.run(context.req.param("id")), { request: context.req.raw }),
 * );
 */
export function eventStreamResponse(
  stream: AsyncIterable<object> | ((signal: AbortSignal) => AsyncIterable<object>) | SubmittedRun,
  options: EventStreamOptions = {},
): Response {
  const { request, ...checked } = checkOptions(eventStreamOptions, options, "eventStreamResponse");
  const left = new AbortController();
  const run = isRun(stream) ? stream : undefined;
  const after = run && lastSeen(run, request);
  // An EventSource connects again after every end of a stream, until it gets this status.
  if (run && after !== undefined && after >= endOf(run)) return new Response(null, { status: 204 });
  const signal = checked.signal ?? request?.signal;
  const source = new EventSource(itemsOf(stream, after, left.signal), left, { ...checked, signal, run });
  return new Response(new ReadableStream(source), {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // Nginx would buffer events until it has several kilobytes.
      "x-accel-buffering": "no",
      ...checked.headers,
    },
  });
}

function itemsOf(
  stream: Parameters<typeof eventStreamResponse>[0],
  after: number | undefined,
  signal: AbortSignal,
): AsyncIterable<object> {
  if (typeof stream === "function") return stream(signal);
  return isRun(stream) ? stream.events({ after, signal }) : stream;
}

function isRequest(value: unknown): boolean {
  return typeof value === "object" && value !== null && "headers" in value && hasMethod(value.headers, "get");
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && typeof Reflect.get(value, name) === "function";
}

function isRun(stream: object): stream is SubmittedRun {
  return hasMethod(stream, "events") && hasMethod(stream, "cancel");
}

/** The last event of this run that the client has; it may have read another one, which had the same address. */
function lastSeen(run: SubmittedRun, request: EventStreamRequest | undefined): number | undefined {
  const [, seq, uuid] = /^(\d{1,15})-(.+)$/.exec(request?.headers.get("last-event-id") ?? "") ?? [];
  if (seq === undefined || uuid !== run.uuid) return undefined;
  const last = run.state === "running" ? run.lastSeq : endOf(run);
  return Number(seq) > last ? undefined : Number(seq);
}

/** The id of the last event of a run that has ended: its result, or after its last event the error. */
function endOf({ state, lastSeq }: SubmittedRun): number {
  if (state === "running") return Infinity;
  return state === "failed" ? lastSeq + 1 : lastSeq;
}

/** The text of one event. A run's events have ids, with which a client that connects again says what it has. */
function eventText(item: object, run: SubmittedRun | undefined): string {
  if (!run || !isRunEvent(item)) return dataLine(toJson(item));
  return `${idLine(run, item.seq)}${dataLine(toJson(item.event))}`;
}

function idLine({ uuid }: SubmittedRun, seq: number): string {
  return `id: ${seq}-${uuid}\n`;
}

function isRunEvent(item: object): item is RunEvent {
  return "seq" in item && "event" in item;
}

function dataLine(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

const encoder = new TextEncoder();

interface EventSourceOptions extends Omit<EventStreamOptions, "request"> {
  /** The run whose events the items are. */
  readonly run: SubmittedRun | undefined;
}

/** Turns items into events, one each time the response has room. */
class EventSource {
  readonly #items: AsyncIterator<object>;
  readonly #left: AbortController;
  readonly #options: EventSourceOptions;
  #ended = false;

  constructor(items: AsyncIterable<object>, leaving: AbortController, options: EventSourceOptions) {
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
      else controller.enqueue(encoder.encode(eventText(step.value, this.#options.run)));
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
    const { run } = this.#options;
    const id = run?.state === "failed" ? idLine(run, endOf(run)) : "";
    controller.enqueue(encoder.encode(`${id}${dataLine(errorToJson(error))}`));
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
