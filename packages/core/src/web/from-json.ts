import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { CodeResult } from "../execution/code-result.ts";
import type { ExecutionEvent } from "../execution/execution-event.ts";
import { type BlockResultFields, makeBlockResult } from "../execution/make-code-result.ts";
import { errorFromJson, type JsonError } from "./json-error.ts";
import { displayFromJson, type JsonCodeResult, type JsonDisplay, resultFromJson } from "./json-result.ts";
import type { JsonExecutionEvent } from "./to-json.ts";

/**
 * Restores the result, event or error from its JSON and decodes base64 to bytes. Anything it does not recognize is
 * returned unchanged: agents' messages are plain JSON on both sides.
 *
 * @throws InvalidInputError if the JSON is a result, event or error with missing parts.
 *
 * @example
 * const result = fromJson((await (await fetch("/run", { method: "POST", body })).json()) as JsonCodeResult);
 */
export function fromJson(json: JsonCodeResult): CodeResult;
export function fromJson(json: JsonExecutionEvent): ExecutionEvent;
export function fromJson(json: JsonError): Error;
export function fromJson(json: unknown): unknown;
export function fromJson(json: unknown): unknown {
  if (typeof json !== "object" || json === null) return json;
  try {
    if (isError(json)) return errorFromJson(json);
    if (isResult(json)) return resultFromJson(json);
    if (isDisplayEvent(json)) return { ...json, display: displayFromJson(json.display) };
    if (isResultEvent(json)) return { ...json, result: resultFromJson(json.result) };
    if (isBlockEnd(json)) return { ...json, result: makeBlockResult(json.result) };
    return json;
  } catch (cause) {
    throw new InvalidInputError("This JSON was not written by toJson", {
      remedy: "Use the same version of @fenced/core on both sides.",
      cause,
    });
  }
}

function isError(json: object): json is JsonError {
  return "type" in json && json.type === "error" && "code" in json && "message" in json;
}

function isResult(json: unknown): json is JsonCodeResult {
  return typeof json === "object" && json !== null && "exitCode" in json && "displays" in json && "blocks" in json;
}

function isDisplayEvent(json: object): json is { readonly display: JsonDisplay } {
  return "type" in json && json.type === "display" && "display" in json;
}

// An agent's event with a result is plain JSON on both sides.
function isResultEvent(json: object): json is { readonly result: JsonCodeResult } {
  return "type" in json && json.type === "result" && "result" in json && isResult(json.result);
}

// A result that has each stream's text is already complete.
function isBlockEnd(json: object): json is { readonly result: BlockResultFields } {
  if (!("type" in json) || json.type !== "block-end" || !("result" in json)) return false;
  return typeof json.result === "object" && json.result !== null && !("stdout" in json.result);
}
