import { type Gauge, type Meter, metrics } from "@opentelemetry/api";
import type { GaugeDefinition, TelemetryAttributes } from "./operation.ts";
import { instrumentOf, safely } from "./watch.ts";

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
