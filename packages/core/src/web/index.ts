export { eventStreamResponse, type EventStreamOptions, type EventStreamRequest } from "./event-stream-response.ts";
export { fileResponse, type FileRequest, type FileResponseOptions } from "./file-response.ts";
export { fromJson } from "./from-json.ts";
export { httpStatus } from "./http-status.ts";
export type { JsonError } from "./json-error.ts";
export type { JsonCodeResult, JsonDisplay } from "./json-result.ts";
export { readEventStream, type ReadEventStreamOptions } from "./read-event-stream.ts";
export { type JsonExecutionEvent, toJson, type ToJsonOptions } from "./to-json.ts";
