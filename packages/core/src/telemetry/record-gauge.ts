import { diag, type Gauge, type Meter, metrics } from "@opentelemetry/api";
import type { GaugeDefinition, TelemetryAttributes } from "./operation.ts";

const instruments = new WeakMap<Meter, Map<string, Gauge>>();

/** Records the current number of something. Does nothing without an SDK, and never throws. */
export function recordGauge(
  scope: string,
  definition: GaugeDefinition,
  value: number,
  attributes: TelemetryAttributes,
): void {
  try {
    gaugeOf(metrics.getMeter(scope), definition).record(value, attributes);
  } catch (error) {
    diag.error("Fenced: telemetry failed", error);
  }
}

function gaugeOf(meter: Meter, { name, description, unit }: GaugeDefinition): Gauge {
  const known = instruments.get(meter) ?? new Map<string, Gauge>();
  instruments.set(meter, known);
  const found = known.get(name);
  if (found !== undefined) return found;
  const made = meter.createGauge(name, { description, unit });
  known.set(name, made);
  return made;
}
