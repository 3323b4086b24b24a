/** What a span or a metric says of itself. `undefined` is left out. */
export type TelemetryAttributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

/** What is watched, as it is known before it begins. */
export interface OperationDefinition {
  /** The instrumentation scope: the name of the package that does it. */
  readonly scope: string;
  /** The schema of the names, if they follow published conventions. */
  readonly schemaUrl?: string;
  /** The span's name. There must be few different ones. */
  readonly name: string;
  /** `client`: a call to another program that may be watched, too. Default: `internal`. */
  readonly kind?: "client" | "internal";
  /** The span's attributes. */
  readonly attributes: TelemetryAttributes;
  /** Where the operation's duration is recorded, in seconds. Default: nowhere. */
  readonly duration?: HistogramDefinition;
  /** The attributes of that record; `error.type` is added. Default: none. */
  readonly metricAttributes?: TelemetryAttributes;
}

/** Something that is being watched: its span, and its duration as a metric. No method throws. */
export interface Operation {
  /** Whether the span keeps attributes. To be asked before work is done for them. */
  readonly recording: boolean;

  /** Adds attributes to the span. */
  set(attributes: TelemetryAttributes): void;

  /**
   * Adds what was said, written or printed to the span, if the process asks for that with
   * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`.
   *
   * @param texts - by attribute, each cut with `captured`; called only if they are kept.
   */
  setContent(texts: () => Readonly<Record<string, string>>): void;

  /** Records a value, such as a size, in the scope of the operation. */
  record(histogram: HistogramDefinition, value: number, attributes: TelemetryAttributes): void;

  /** Marks the operation as failed, with the `errorType` of what was thrown. */
  fail(error: unknown): void;

  /** Marks the operation as failed, with this `error.type`. There must be few different ones. */
  failAs(type: string): void;

  /** Ends the operation before its generator ends, since its result is there; what comes after does not count. */
  end(): void;
}

/** A histogram that an operation records into. */
export interface HistogramDefinition {
  readonly name: string;
  readonly description: string;
  /** A UCUM unit: `s`, `By`, `{token}`. */
  readonly unit: string;
  /** Upper ends of the buckets, unless the application configures others. */
  readonly boundaries: readonly number[];
}

/** A gauge: how many there are of something now. */
export interface GaugeDefinition {
  readonly name: string;
  readonly description: string;
  /** A UCUM unit: `{session}`. */
  readonly unit: string;
}
