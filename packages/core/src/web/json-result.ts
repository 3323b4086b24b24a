import type { CodeResult } from "../execution/code-result.ts";
import type { Display, MimeBundle } from "../execution/display.ts";
import { type CompactCodeResult, compactCodeResult, expandCodeResult } from "../execution/make-code-result.ts";
import { isJsonValue, maxJsonDepth, type JsonValue } from "../json-value.ts";
import { fromBase64, toBase64 } from "./base64.ts";

/** A `Display` as plain JSON. */
export interface JsonDisplay {
  /** Content by MIME type; base64 text for the types in `base64`. */
  readonly data: Readonly<Record<string, JsonValue>>;
  /** The MIME types in `data` whose bytes are base64 text. */
  readonly base64: readonly string[];
  /** Absolute paths on the host; empty unless `hostPaths` is set. */
  readonly files: readonly string[];
}

/** A `CodeResult` as plain JSON, with each character of output only once; `fromJson` restores it. */
export interface JsonCodeResult extends Omit<CompactCodeResult, "displays"> {
  readonly displays: readonly JsonDisplay[];
}

/** Converts a result to plain JSON. */
export function resultToJson(result: CodeResult | JsonCodeResult, hostPaths: boolean): JsonCodeResult {
  const { codeFile, displays, ...rest } = isJsonResult(result) ? result : compactCodeResult(result);
  return {
    ...rest,
    ...(hostPaths && codeFile !== undefined ? { codeFile } : {}),
    displays: displays.map((display) => displayToJson(display, hostPaths)),
  };
}

/** Restores a result from its JSON. */
export function resultFromJson({ displays, ...rest }: JsonCodeResult): CodeResult {
  return expandCodeResult({ ...rest, displays: displays.map(displayFromJson) });
}

/** Converts a rich output to plain JSON. */
export function displayToJson(display: Display | JsonDisplay, hostPaths: boolean): JsonDisplay {
  const files = hostPaths ? display.files : [];
  if ("base64" in display) return { ...display, files };
  const contents = Object.entries(display.data);
  const base64 = contents.flatMap(([mediaType, content]) => (content instanceof Uint8Array ? [mediaType] : []));
  // Programs choose the keys: Object.fromEntries creates own properties, even for "__proto__".
  const data = Object.fromEntries(contents.map(([mediaType, content]) => [mediaType, contentToJson(content)]));
  return { data, base64, files };
}

/** Restores a rich output from its JSON. */
export function displayFromJson({ data, base64, files }: JsonDisplay): Display {
  const bytes = new Set(base64);
  const contents = Object.entries(data).map(([mediaType, content]): [string, MimeBundle[string]] => [
    mediaType,
    bytes.has(mediaType) && typeof content === "string" ? fromBase64(content) : content,
  ]);
  return { data: Object.fromEntries(contents), files };
}

function isJsonResult(result: CodeResult | JsonCodeResult): result is JsonCodeResult {
  return !("stdout" in result) || result.displays.some((display) => "base64" in display);
}

function contentToJson(content: MimeBundle[string]): JsonValue {
  if (content instanceof Uint8Array) return toBase64(content);
  return isJsonValue(content) ? content : `[left out: not JSON, or nested more than ${maxJsonDepth} levels deep]`;
}
