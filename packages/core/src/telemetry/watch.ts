import {
  context,
  type Context,
  createNoopMeter,
  diag,
  type Gauge,
  type Histogram,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  type Meter,
  metrics,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
// oxlint-disable-next-line import/no-unassigned-import -- has an effect, before any class is defined
import "../runtime/disposal.ts";
import { captured, capturesContent } from "./content-capture.ts";
import { errorType } from "./error-type.ts";
import type {
  HistogramDefinition,
  OpenOperation,
  Operation,
  OperationDefinition,
  TelemetryAttributes,
} from "./operation.ts";

/**
 * True if an SDK may record what an operation reports. Ask it once, before you compute attributes that nobody gets.
 *
 * @param scope - the instrumentation scope of the operation.
 */
export function isWatched(scope: string): boolean {
  const recorded = safely(() => hasTracer(scope) || metrics.getMeter(scope) !== createNoopMeter());
  return recorded ?? false;
}

/**
 * Runs an action with its operation's span as the active one.
 *
 * @param report - adds the outcome to the operation before it ends; not called if telemetry is off.
 * @throws what the action throws, after marking the operation as failed.
 */
export async function watch<T>(
  definition: OperationDefinition,
  action: (operation: Operation) => Promise<T>,
  report?: (operation: Operation, result: T) => void,
): Promise<T> {
  const operation = new WatchedOperation(definition, context.active());
  if (operation.isOff) return action(operation);
  try {
    const result = await operation.within(() => action(operation));
    report?.(operation, result);
    return result;
  } catch (error) {
    operation.fail(error);
    throw error;
  } finally {
    operation.end();
  }
}

/**
 * Watches a generator from the first requested item to its end. Its code runs with the operation's span as the active
 * one, whatever the consumer's context; the span's parent is the one that is active when `watchStream` is called. A
 * consumer that leaves ends the operation, which is then marked with `fenced.left_early` and not as failed.
 *
 * @param report - adds the outcome to the operation before it ends; not called if telemetry is off.
 */
export function watchStream<Item, Result>(
  definition: OperationDefinition,
  open: (operation: Operation) => AsyncGenerator<Item, Result, void>,
  report?: (operation: Operation, result: Result) => void,
): AsyncGenerator<Item, Result, void> {
  const parent = context.active();
  return new WatchedStream({ begin: () => new WatchedOperation(definition, parent), open, report });
}

/** Options of `watchStream`. */
interface StreamWatch<Item, Result> {
  readonly begin: () => WatchedOperation;
  readonly open: (operation: Operation) => AsyncGenerator<Item, Result, void>;
  readonly report: ((operation: Operation, result: Result) => void) | undefined;
}

/** A generator that could not be opened: its first step throws, which ends the operation. */
// oxlint-disable-next-line require-yield
async function* failed(error: unknown): AsyncGenerator<never, never, void> {
  throw error;
}

class WatchedStream<Item, Result> implements AsyncGenerator<Item, Result, void> {
  readonly #watch: StreamWatch<Item, Result>;
  #items: AsyncGenerator<Item, Result, void> | undefined;
  /** Absent if telemetry is off. */
  #operation: WatchedOperation | undefined;
  #unread: IteratorReturnResult<Result> | undefined;
  #left = false;

  constructor(streamWatch: StreamWatch<Item, Result>) {
    this.#watch = streamWatch;
  }

  next(): Promise<IteratorResult<Item, Result>> {
    if (this.#unread) return Promise.resolve(this.#unread);
    const items = (this.#items ??= this.#begin());
    return this.#step(() => items.next());
  }

  async return(value: Result | PromiseLike<Result>): Promise<IteratorResult<Item, Result>> {
    const items = this.#items;
    if (!items) return (this.#unread = { done: true, value: await value });
    this.#leave();
    return this.#step(() => items.return(value));
  }

  throw(error: unknown): Promise<IteratorResult<Item, Result>> {
    const items = (this.#items ??= this.#begin());
    return this.#step(() => items.throw(error));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const items: AsyncIterator<Item, Result, void> | undefined = this.#items;
    if (!items) return;
    this.#leave();
    try {
      await items.return?.();
    } finally {
      this.#operation?.end();
    }
  }

  #begin(): AsyncGenerator<Item, Result, void> {
    const operation = this.#watch.begin();
    if (!operation.isOff) this.#operation = operation;
    try {
      return operation.within(() => this.#watch.open(operation));
    } catch (error) {
      return failed(error);
    }
  }

  #leave(): void {
    this.#left = true;
    this.#operation?.leave();
  }

  #step(ask: () => Promise<IteratorResult<Item, Result>>): Promise<IteratorResult<Item, Result>> {
    const operation = this.#operation;
    return operation ? this.#watchStep(operation, ask) : ask();
  }

  async #watchStep(
    operation: WatchedOperation,
    ask: () => Promise<IteratorResult<Item, Result>>,
  ): Promise<IteratorResult<Item, Result>> {
    try {
      const step = await operation.within(ask);
      if (step.done === true) {
        if (!this.#left) this.#watch.report?.(operation, step.value);
        operation.end();
      }
      return step;
    } catch (error) {
      if (!this.#left) operation.fail(error);
      operation.end();
      throw error;
    }
  }
}

/**
 * Begins an operation under the active span; end it, whatever happens.
 *
 * @param begunMsAgo - when it really began, in milliseconds before now. Default: 0.
 * @returns `undefined` if telemetry is off.
 */
export function beginOperation(definition: OperationDefinition, begunMsAgo = 0): OpenOperation | undefined {
  const operation = new WatchedOperation(definition, context.active(), begunMsAgo);
  return operation.isOff ? undefined : operation;
}

/**
 * Binds a function to the context that is active now. For work that an event, such as an abort, does on behalf of an
 * operation.
 */
export function inThisContext<Args extends unknown[], Result>(
  action: (...args: Args) => Result,
): (...args: Args) => Result {
  return context.bind(context.active(), action);
}

/** Runs `action` without an active span: for a timer that outlives the operation that sets it up. */
export function unwatched<T>(action: () => T): T {
  return context.with(ROOT_CONTEXT, action);
}

/** An operation, which begins when this object is created. */
class WatchedOperation implements OpenOperation {
  readonly #definition: OperationDefinition;
  readonly #span: Span;
  readonly #context: Context;
  readonly #started: number;
  #error: TelemetryAttributes = {};
  #ended = false;

  constructor(definition: OperationDefinition, parent: Context, begunMsAgo = 0) {
    this.#definition = definition;
    // After what an SDK does to begin a span, so that both measure the same time.
    this.#span = startSpan(definition, parent, begunMsAgo);
    this.#started = performance.now() - begunMsAgo;
    this.#context = this.#isTraced ? trace.setSpan(parent, this.#span) : parent;
  }

  /** True if neither spans nor metrics record it, and no span within it needs it as a parent. */
  get isOff(): boolean {
    return !this.#isTraced && (safely(() => metrics.getMeter(this.#definition.scope) === createNoopMeter()) ?? true);
  }

  get recording(): boolean {
    return safely(() => this.#span.isRecording()) ?? false;
  }

  set(attributes: TelemetryAttributes): void {
    safely(() => this.#span.setAttributes(attributes));
  }

  setContent(texts: () => Readonly<Record<string, string>>): void {
    if (!this.recording || !capturesContent()) return;
    safely(() => this.#span.setAttributes(texts()));
  }

  record(histogram: HistogramDefinition, value: number, attributes: TelemetryAttributes): void {
    recordValue(this.#definition.scope, histogram, value, attributes);
  }

  fail(error: unknown): void {
    if (this.#ended) return;
    // An error's message may quote code or output.
    this.failAs(errorType(error), capturesContent() && error instanceof Error ? captured(error.message) : undefined);
  }

  failAs(type: string, message?: string): void {
    this.#error = { "error.type": type };
    this.set(this.#error);
    const status = { code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) };
    safely(() => this.#span.setStatus(status));
  }

  /** Runs `action` with the span as the active one. */
  within<T>(action: () => T): T {
    return context.with(this.#context, action);
  }

  /** Marks the operation as left by its consumer, unless it has ended. */
  leave(): void {
    if (!this.#ended) this.set({ "fenced.left_early": true });
  }

  leaveOff(): void {
    if (this.#ended) return;
    this.leave();
    this.#ended = true;
    safely(() => this.#span.end());
  }

  end(durationMs?: number): void {
    if (this.#ended) return;
    this.#ended = true;
    const seconds = (durationMs ?? performance.now() - this.#started) / 1000;
    safely(() => this.#span.end());
    const { duration, metricAttributes } = this.#definition;
    if (duration) this.record(duration, seconds, { ...metricAttributes, ...this.#error });
  }

  get #isTraced(): boolean {
    return safely(() => isSpanContextValid(this.#span.spanContext())) ?? false;
  }
}

/** Without an SDK, the global provider has nobody to pass spans on to. */
function hasTracer(scope: string): boolean {
  const provider = trace.getTracerProvider();
  // oxlint-disable-next-line typescript/no-deprecated -- nothing else tells whether there is an SDK without starting a span
  if (!(provider instanceof ProxyTracerProvider)) return true;
  return provider.getDelegateTracer(scope) !== undefined;
}

function startSpan(
  { scope, schemaUrl, name, kind, attributes }: OperationDefinition,
  parent: Context,
  begunMsAgo: number,
): Span {
  const span = safely(() => {
    const options = schemaUrl === undefined ? {} : { schemaUrl };
    const tracer = trace.getTracerProvider().getTracer(scope, undefined, options);
    const spanKind = kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL;
    const startTime = begunMsAgo === 0 ? {} : { startTime: Date.now() - begunMsAgo };
    return tracer.startSpan(name, { kind: spanKind, attributes, ...startTime }, parent);
  });
  return span ?? trace.wrapSpanContext(INVALID_SPAN_CONTEXT);
}

const instruments = new WeakMap<Meter, Map<string, Gauge | Histogram>>();

/** Records one value. Does nothing without an SDK, and never throws. */
function recordValue(
  scope: string,
  { name, description, unit, boundaries }: HistogramDefinition,
  value: number,
  attributes: TelemetryAttributes,
): void {
  const advice = { explicitBucketBoundaries: [...boundaries] };
  const make = (meter: Meter): Histogram => meter.createHistogram(name, { description, unit, advice });
  safely(() => instrumentOf(metrics.getMeter(scope), name, make).record(value, attributes));
}

/** The instrument of this name, made once for each meter. */
export function instrumentOf(meter: Meter, name: string, make: (meter: Meter) => Gauge | Histogram): Gauge | Histogram {
  const known = instruments.get(meter) ?? new Map<string, Gauge | Histogram>();
  instruments.set(meter, known);
  const found = known.get(name) ?? make(meter);
  known.set(name, found);
  return found;
}

/** Returns `undefined` if the SDK or one of its plug-ins throws: telemetry never breaks what it observes. */
export function safely<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    try {
      diag.error("Fenced: telemetry failed", error);
    } catch {
      // The logger is a plug-in, too.
    }
    return undefined;
  }
}
