import type { CodeResult } from "../execution/code-result.ts";
import type { ExecutionEvent } from "../execution/execution-event.ts";
import { errorToJson, type JsonError } from "./json-error.ts";
import { displayToJson, type JsonCodeResult, type JsonDisplay, resultToJson } from "./json-result.ts";

/** An `ExecutionEvent` as plain JSON. */
export type JsonExecutionEvent =
  | Exclude<ExecutionEvent, { readonly type: "display" | "result" }>
  | { readonly type: "display"; readonly index: number; readonly display: JsonDisplay }
  | { readonly type: "result"; readonly result: JsonCodeResult };

/** Options of `toJson`. */
export interface ToJsonOptions {
  /** Keep host paths: `codeFile`, and where pictures were saved. For readers on the same machine. Default: false. */
  readonly hostPaths?: boolean | undefined;
}

/**
 * Converts what a server may send to a client to plain JSON: bytes become base64, and host paths are left out. Accepts
 * a result, an event of `streamCodeBlocks`, an error, or anything that an agent or a team yields. For an error that is
 * not a `FencedError`, only its kind is included.
 *
 * @example
 * response.end(JSON.stringify(toJson(await executor.executeCodeBlocks(blocks))));
 */
export function toJson(result: CodeResult, options?: ToJsonOptions): JsonCodeResult;
export function toJson(event: ExecutionEvent, options?: ToJsonOptions): JsonExecutionEvent;
export function toJson(error: Error, options?: ToJsonOptions): JsonError;
export function toJson(message: object, options?: ToJsonOptions): object;
export function toJson(value: object, { hostPaths = false }: ToJsonOptions = {}): object {
  if (value instanceof Error) return errorToJson(value);
  if (isResult(value)) return resultToJson(value, hostPaths);
  if (isDisplayEvent(value)) return { ...value, display: displayToJson(value.display, hostPaths) };
  if ("result" in value && isResult(value.result)) return { ...value, result: resultToJson(value.result, hostPaths) };
  return hostPaths ? value : withoutImagePaths(value);
}

/** Removes paths from agents' messages and what contains them: an image part says where the image was saved. */
function withoutImagePaths(value: object): object {
  const changed = { ...value };
  if ("content" in value && Array.isArray(value.content)) Object.assign(changed, { content: value.content.map(part) });
  for (const key of ["messages", "innerMessages"]) {
    const messages: unknown = Reflect.get(value, key);
    if (Array.isArray(messages)) Object.assign(changed, { [key]: messages.map(message) });
  }
  if ("chatMessage" in value) Object.assign(changed, { chatMessage: message(value.chatMessage) });
  return changed;
}

function message(value: unknown): unknown {
  return typeof value === "object" && value !== null ? toJson(value) : value;
}

function part(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("type" in value) || value.type !== "image") return value;
  const { path: _, ...rest } = { path: undefined, ...value };
  return rest;
}

function isDisplayEvent(value: object): value is Extract<ExecutionEvent, { readonly type: "display" }> {
  return "type" in value && value.type === "display" && "display" in value;
}

function isResult(value: unknown): value is CodeResult | JsonCodeResult {
  return typeof value === "object" && value !== null && "exitCode" in value && "displays" in value && "blocks" in value;
}
