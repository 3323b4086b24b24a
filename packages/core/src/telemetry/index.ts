export { captured, capturesContent } from "./content-capture.ts";
export { errorType } from "./error-type.ts";
export type { HistogramDefinition } from "./histograms.ts";
export { inThisContext } from "./in-this-context.ts";
export type { Operation, OperationDefinition, TelemetryAttributes } from "./operation.ts";
export { unwatched } from "./unwatched.ts";
export { watch, watchStream } from "./watch.ts";
