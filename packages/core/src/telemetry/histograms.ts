import { createNoopMeter, metrics, type Histogram, type Meter } from "@opentelemetry/api";
import type { TelemetryAttributes } from "./operation.ts";
import { safely } from "./safely.ts";

/** A histogram that an operation records into. */
export interface HistogramDefinition {
  readonly name: string;
  readonly description: string;
  /** A UCUM unit: `s`, `By`, `{token}`. */
  readonly unit: string;
  /** Upper ends of the buckets, unless the application configures others. */
  readonly boundaries: readonly number[];
}

const instruments = new WeakMap<Meter, Map<string, Histogram>>();

/** Whether there is nobody who reads metrics. */
export function metricsAreOff(scope: string): boolean {
  return metrics.getMeter(scope) === createNoopMeter();
}

/** Records one value. Does nothing without an SDK, and never throws. */
export function recordValue(
  scope: string,
  definition: HistogramDefinition,
  value: number,
  attributes: TelemetryAttributes,
): void {
  safely(() => histogramOf(metrics.getMeter(scope), definition).record(value, attributes), undefined);
}

function histogramOf(meter: Meter, { name, description, unit, boundaries }: HistogramDefinition): Histogram {
  const known = instruments.get(meter) ?? new Map<string, Histogram>();
  instruments.set(meter, known);
  const found = known.get(name);
  if (found !== undefined) return found;
  const advice = { explicitBucketBoundaries: [...boundaries] };
  const made = meter.createHistogram(name, { description, unit, advice });
  known.set(name, made);
  return made;
}
