import type { CodeResult, Display, JsonValue } from "@fenced/core";

/** A `Display` as plain JSON. */
export interface JsonDisplay {
  /** MIME type to content; the types that `base64` lists are base64 text. */
  readonly data: Readonly<Record<string, JsonValue>>;
  /** The MIME types in `data` whose bytes stand there as base64 text. */
  readonly base64: readonly string[];
  /** Absolute paths, on the host, of the files in which the executor saved this output. */
  readonly files: readonly string[];
}

/** A `CodeResult` as plain JSON: only its displays differ, since bytes are not JSON. */
export interface JsonCodeResult extends Omit<CodeResult, "displays"> {
  readonly displays: readonly JsonDisplay[];
}

/** The plain JSON form of a result. */
export function toJsonCodeResult(result: CodeResult): JsonCodeResult {
  return { ...result, displays: result.displays.map(toJsonDisplay) };
}

function toJsonDisplay(display: Display): JsonDisplay {
  const data: Record<string, JsonValue> = {};
  const base64: string[] = [];
  for (const [mediaType, content] of Object.entries(display.data)) {
    if (content instanceof Uint8Array) {
      data[mediaType] = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("base64");
      base64.push(mediaType);
    } else {
      data[mediaType] = content;
    }
  }
  return { data, base64, files: display.files };
}
