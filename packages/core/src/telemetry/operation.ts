/** The attributes of a span or a metric. `undefined` ones are left out. */
export type TelemetryAttributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

/** What is known about an operation before it begins. */
export interface OperationDefinition {
  /** The instrumentation scope: the name of the package that performs the operation. */
  readonly scope: string;
  /** The schema URL of the names, if they follow published conventions. */
  readonly schemaUrl?: string;
  /** The span's name; must have few distinct values. */
  readonly name: string;
  /** `client`: a call to another program that may be traced, too. Default: `internal`. */
  readonly kind?: "client" | "internal";
  /** The span's attributes. */
  readonly attributes: TelemetryAttributes;
  /** The histogram that records the operation's duration, in seconds. Default: none. */
  readonly duration?: HistogramDefinition;
  /** The attributes of that record; `error.type` is added. Default: none. */
  readonly metricAttributes?: TelemetryAttributes;
}

/** An operation that is being recorded: its span, and its duration as a metric. No method throws. */
export interface Operation {
  /** True if the span keeps attributes. Check it before you do work for them. */
  readonly recording: boolean;

  /** Adds attributes to the span. */
  set(attributes: TelemetryAttributes): void;

  /**
   * Adds what was said, written or printed to the span, if the process enables that with
   * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`.
   *
   * @param texts - by attribute, each cut with `captured`; called only if they are kept.
   */
  setContent(texts: () => Readonly<Record<string, string>>): void;

  /** Records a value, such as a size, in the operation's scope. */
  record(histogram: HistogramDefinition, value: number, attributes: TelemetryAttributes): void;

  /** Marks the operation as failed, with the `errorType` of what was thrown. */
  fail(error: unknown): void;

  /** Marks the operation as failed, with this `error.type`, which must have few distinct values. */
  failAs(type: string): void;

  /** Ends the operation before its generator ends, because its result is available; what follows does not count. */
  end(): void;
}

/** An operation that is neither one action nor one generator: the code that begins it must end it. */
export interface OpenOperation extends Operation {
  /** Runs `action` with the operation's span as the active one. */
  within<T>(action: () => T): T;

  /**
   * Ends the operation, which took so many milliseconds, however long it was watched. Default: as long as it was
   * watched.
   */
  end(durationMs?: number): void;

  /** Ends only the span, marked with `fenced.left_early`: the operation goes on elsewhere, and its duration is known there. */
  leaveOff(): void;
}

/** A histogram that operations record into. */
export interface HistogramDefinition {
  readonly name: string;
  readonly description: string;
  /** A UCUM unit: `s`, `By`, `{token}`. */
  readonly unit: string;
  /** Upper bounds of the buckets, unless the application configures others. */
  readonly boundaries: readonly number[];
}

/** A gauge: the current number of something. */
export interface GaugeDefinition {
  readonly name: string;
  readonly description: string;
  /** A UCUM unit: `{session}`. */
  readonly unit: string;
}
