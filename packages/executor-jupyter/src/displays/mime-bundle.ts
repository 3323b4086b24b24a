import type { JsonValue, MimeBundle } from "@fenced/core";

/** A bundle as kernels send it, with binary content as bytes instead of base64, and lines joined. */
export function mimeBundle(data: Readonly<Record<string, unknown>>): MimeBundle {
  return Object.fromEntries(
    Object.entries(data).flatMap(([type, content]) => {
      const value = contentOf(type, content);
      return value === undefined ? [] : [[type, value]];
    }),
  );
}

/**
 * What a person at a terminal would see of a bundle: its plain text, or else what is readable as it is; `undefined`:
 * nothing.
 */
export function plainText(bundle: MimeBundle): string | undefined {
  for (const type of ["text/plain", "text/markdown", "text/latex"]) {
    const text = bundle[type];
    if (typeof text === "string" && text !== "") return text;
  }
  return undefined;
}

/** Whether content of this type is bytes, which kernels send as base64. */
function isBinary(type: string): boolean {
  if (type.endsWith("+xml") || type.endsWith("+json")) return false;
  return (
    /^(?:image|audio|video|font)\//.test(type) || type === "application/pdf" || type === "application/octet-stream"
  );
}

function contentOf(type: string, content: unknown): string | Uint8Array | JsonValue | undefined {
  // Some kernels send text as a list of lines, as notebooks are stored.
  const lines = Array.isArray(content) && content.every((line) => typeof line === "string") && !isJson(type);
  const value = lines ? content.join("") : content;
  if (typeof value === "string" && isBinary(type)) return decodeBase64(value);
  return isJsonValue(value) ? value : undefined;
}

function isJson(type: string): boolean {
  return type === "application/json" || type.endsWith("+json");
}

/** Content that is no base64 stays what it is. */
function decodeBase64(text: string): Uint8Array | string {
  const compact = text.replaceAll(/\s/g, "");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) return text;
  return new Uint8Array(Buffer.from(compact, "base64"));
}

function isJsonValue(value: unknown): value is JsonValue {
  return value !== undefined && typeof value !== "function" && typeof value !== "symbol" && typeof value !== "bigint";
}
