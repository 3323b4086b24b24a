import { diag, type Gauge, type Histogram, type Meter, metrics } from "@opentelemetry/api";
import type { GaugeDefinition, HistogramDefinition, TelemetryAttributes } from "./operation.ts";

const instruments = new WeakMap<Meter, Map<string, Gauge | Histogram>>();

/** Records the current number of something. Does nothing without an SDK, and never throws. */
export function recordGauge(
  scope: string,
  { name, description, unit }: GaugeDefinition,
  value: number,
  attributes: TelemetryAttributes,
): void {
  const make = (meter: Meter): Gauge => meter.createGauge(name, { description, unit });
  safely(() => instrumentOf(metrics.getMeter(scope), name, make).record(value, attributes));
}

/** Records one value. Does nothing without an SDK, and never throws. */
export function recordValue(
  scope: string,
  { name, description, unit, boundaries }: HistogramDefinition,
  value: number,
  attributes: TelemetryAttributes,
): void {
  const advice = { explicitBucketBoundaries: [...boundaries] };
  const make = (meter: Meter): Histogram => meter.createHistogram(name, { description, unit, advice });
  safely(() => instrumentOf(metrics.getMeter(scope), name, make).record(value, attributes));
}

function instrumentOf(meter: Meter, name: string, make: (meter: Meter) => Gauge | Histogram): Gauge | Histogram {
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
