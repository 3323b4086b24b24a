import { context, diag, DiagLogLevel, metrics, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-base";

export { metrics, SpanStatusCode, trace } from "@opentelemetry/api";

/** The OpenTelemetry SDK, set up to keep everything in memory. Only one at a time in a process. */
export class TelemetryRecorder implements AsyncDisposable {
  /** What OpenTelemetry complains about, such as changes to spans that have ended. */
  readonly complaints: string[] = [];
  readonly #spans = new InMemorySpanExporter();
  readonly #starts = new StartOrder();
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.DELTA);
  readonly #reader = new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 3_600_000 });
  readonly #tracers = new BasicTracerProvider({ spanProcessors: [this.#starts, new SimpleSpanProcessor(this.#spans)] });
  readonly #meters = new MeterProvider({ readers: [this.#reader] });

  constructor() {
    const complain = (message: string): void => void this.complaints.push(message);
    const ignore = (): void => {};
    diag.setLogger(
      { error: complain, warn: complain, info: ignore, debug: ignore, verbose: ignore },
      { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
    );
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(this.#tracers);
    metrics.setGlobalMeterProvider(this.#meters);
  }

  /** The spans that have ended, in the order of their ends. */
  get spans(): readonly ReadableSpan[] {
    return this.#spans.getFinishedSpans();
  }

  /** The only span of a name. */
  span(name: string): ReadableSpan {
    const [found, ...others] = this.spans.filter((span) => span.name === name);
    if (found !== undefined && others.length === 0) return found;
    throw new Error(`There are ${found ? others.length + 1 : 0} spans "${name}", of:\n${this.tree().join("\n")}`);
  }

  /** The spans in the order of their starts, each indented under its parent, with its `error.type` if it failed. */
  tree(): string[] {
    const spans = this.spans.toSorted((one, other) => this.#starts.placeOf(one) - this.#starts.placeOf(other));
    const ids = new Set(spans.map((span) => span.spanContext().spanId));
    const under = (parent: string | undefined, depth: number): string[] =>
      spans
        .filter((span) => {
          const id = span.parentSpanContext?.spanId;
          return parent === undefined ? id === undefined || !ids.has(id) : id === parent;
        })
        .flatMap((span) => [line(span, depth), ...under(span.spanContext().spanId, depth + 1)]);
    return under(undefined, 0);
  }

  /** The histograms by name, with what was recorded since the last call. */
  async histograms(): Promise<Map<string, readonly DataPoint<Histogram>[]>> {
    this.#metrics.reset();
    await this.#reader.forceFlush();
    const scopes = this.#metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const found = scopes.flatMap((scope): readonly MetricData[] => scope.metrics);
    return new Map(found.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints.filter(isOfHistogram)]));
  }

  /** The gauges by name and attributes, with the last value of each. */
  async gauges(): Promise<Record<string, number>> {
    this.#metrics.reset();
    await this.#reader.forceFlush();
    const scopes = this.#metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const found: Record<string, number> = {};
    for (const { descriptor, dataPoints } of scopes.flatMap(({ metrics: all }) => all)) {
      for (const { value, attributes } of dataPoints) {
        const name = [descriptor.name, ...Object.values(attributes)].join(" ");
        if (typeof value === "number") found[name] = value;
      }
    }
    return found;
  }

  /** Everything that left the process in spans, as text to search in. */
  text(): string {
    return JSON.stringify(
      this.spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    );
  }

  /** Forgets the spans. */
  reset(): void {
    this.#spans.reset();
  }

  /** Removes the SDK. */
  async [Symbol.asyncDispose](): Promise<void> {
    trace.disable();
    metrics.disable();
    context.disable();
    diag.disable();
    await this.#tracers.shutdown();
    await this.#meters.shutdown();
  }
}

/** Remembers in which order spans began: the clock gives some of them the same time. */
class StartOrder implements SpanProcessor {
  readonly #ids: string[] = [];

  onStart(span: ReadableSpan): void {
    this.#ids.push(span.spanContext().spanId);
  }

  onEnd(): void {}

  async forceFlush(): Promise<void> {}

  async shutdown(): Promise<void> {}

  placeOf(span: ReadableSpan): number {
    return this.#ids.indexOf(span.spanContext().spanId);
  }
}

function line({ name, status, attributes }: ReadableSpan, depth: number): string {
  const failed = status.code === SpanStatusCode.ERROR ? ` !${String(attributes["error.type"])}` : "";
  return `${"  ".repeat(depth)}${name}${failed}`;
}

function isOfHistogram(point: DataPoint<unknown>): point is DataPoint<Histogram> {
  return typeof point.value === "object" && point.value !== null && "buckets" in point.value;
}
