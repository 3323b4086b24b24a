import {
  context,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
} from "@opentelemetry/api";
import { captured, capturesContent } from "./content-capture.ts";
import { errorType } from "./error-type.ts";
import { metricsAreOff, recordValue, type HistogramDefinition } from "./histograms.ts";
import type { Operation, OperationDefinition, TelemetryAttributes } from "./operation.ts";
import { safely } from "./safely.ts";

/** An operation from its beginning, which is when it is made. */
export class WatchedOperation implements Operation {
  readonly #definition: OperationDefinition;
  readonly #span: Span;
  readonly #context: Context;
  readonly #started: number = performance.now();
  #error: TelemetryAttributes = {};
  #ended = false;

  constructor(definition: OperationDefinition, parent: Context) {
    this.#definition = definition;
    this.#span = startSpan(definition, parent);
    this.#context = this.#isTraced ? trace.setSpan(parent, this.#span) : parent;
  }

  /** Whether nobody sees anything of it: neither span nor metrics, nor has what happens within it a parent. */
  get isOff(): boolean {
    return !this.#isTraced && safely(() => metricsAreOff(this.#definition.scope), true);
  }

  get recording(): boolean {
    return safely(() => this.#span.isRecording(), false);
  }

  set(attributes: TelemetryAttributes): void {
    safely(() => this.#span.setAttributes(attributes), this.#span);
  }

  setContent(texts: () => Readonly<Record<string, string>>): void {
    if (!this.recording || !capturesContent()) return;
    safely(() => this.#span.setAttributes(texts()), this.#span);
  }

  record(histogram: HistogramDefinition, value: number, attributes: TelemetryAttributes): void {
    recordValue(this.#definition.scope, histogram, value, attributes);
  }

  fail(error: unknown): void {
    if (this.#ended) return;
    // An error's message may quote code or output.
    this.#fail(errorType(error), capturesContent() && error instanceof Error ? captured(error.message) : undefined);
  }

  failAs(type: string): void {
    this.#fail(type, undefined);
  }

  /** Runs `action` with the span as the active one. */
  within<T>(action: () => T): T {
    return context.with(this.#context, action);
  }

  /** Marks the operation as one whose consumer left, unless it has ended. */
  leave(): void {
    if (!this.#ended) this.set({ "fenced.left_early": true });
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const { duration, metricAttributes } = this.#definition;
    if (duration !== undefined) {
      const seconds = (performance.now() - this.#started) / 1000;
      this.record(duration, seconds, { ...metricAttributes, ...this.#error });
    }
    safely(() => this.#span.end(), undefined);
  }

  get #isTraced(): boolean {
    return safely(() => isSpanContextValid(this.#span.spanContext()), false);
  }

  #fail(type: string, message: string | undefined): void {
    this.#error = { "error.type": type };
    this.set(this.#error);
    const status = { code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) };
    safely(() => this.#span.setStatus(status), this.#span);
  }
}

function startSpan({ scope, schemaUrl, name, kind, attributes }: OperationDefinition, parent: Context): Span {
  return safely(() => {
    const options = schemaUrl === undefined ? {} : { schemaUrl };
    const tracer = trace.getTracerProvider().getTracer(scope, undefined, options);
    const spanKind = kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL;
    return tracer.startSpan(name, { kind: spanKind, attributes }, parent);
  }, trace.wrapSpanContext(INVALID_SPAN_CONTEXT));
}
