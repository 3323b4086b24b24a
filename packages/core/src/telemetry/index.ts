export { captured, capturesContent } from "./content-capture.ts";
export { errorType } from "./error-type.ts";
export type {
  GaugeDefinition,
  HistogramDefinition,
  Operation,
  OpenOperation,
  OperationDefinition,
  TelemetryAttributes,
} from "./operation.ts";
export { recordGauge } from "./record-gauge.ts";
export { beginOperation, inThisContext, isWatched, unwatched, watch, watchStream } from "./watch.ts";
