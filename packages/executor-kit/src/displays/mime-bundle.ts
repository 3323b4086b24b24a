import type { JsonValue, MimeBundle } from "@fenced/core";

/** Limits for a bundle, far above what libraries produce. Anything beyond them is left out. */
const [mostTypes, mostDepth] = [64, 100];
const mimeType = /^[a-z0-9][\w.+-]{0,99}\/[\w.+-]{1,99}(?:;[\w .+=;"-]{1,99})?$/i;

/**
 * A bundle from a kernel, with binary content as bytes instead of base64, and lines joined. Code decides what it
 * contains, so keys that are not MIME types, and values that do not fit their type, are left out.
 */
export function mimeBundle(data: unknown): MimeBundle {
  if (typeof data !== "object" || data === null) return {};
  const types = Object.entries(data).filter(([type]) => mimeType.test(type));
  return Object.fromEntries(
    types.slice(0, mostTypes).flatMap(([type, content]) => {
      const value = contentOf(type, content);
      return value === undefined ? [] : [[type, value]];
    }),
  );
}

function contentOf(type: string, content: unknown): string | Uint8Array | JsonValue | undefined {
  const name = type.toLowerCase().replace(/;.*/, "");
  if (name.endsWith("json")) return jsonValue(content, mostDepth);
  // Some kernels send text as a list of lines, as notebooks are stored.
  const isLines = Array.isArray(content) && content.every((line) => typeof line === "string");
  const text: unknown = isLines ? content.join("") : content;
  if (typeof text === "string") return isBinary(name) ? decodeBase64(text) : text;
  return name.startsWith("application/") && !isBinary(name) ? jsonValue(text, mostDepth) : undefined;
}

/** True if content of this type is binary, which kernels send as base64. */
function isBinary(name: string): boolean {
  if (name.endsWith("+xml")) return false;
  return (
    /^(?:image|audio|video|font)\//.test(name) || name === "application/pdf" || name === "application/octet-stream"
  );
}

/** Text that is not base64 stays unchanged. */
function decodeBase64(text: string): Uint8Array | string {
  const compact = text.replaceAll(/\s/g, "");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) return text;
  return new Uint8Array(Buffer.from(compact, "base64"));
}

/**
 * A copy without keys that would set the prototype when the object is copied; `undefined` if it is nested too deeply.
 */
function jsonValue(value: unknown, depth: number): JsonValue | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  if (typeof value !== "object" || depth === 0) return undefined;
  if (Array.isArray(value)) {
    const items = value.map((item) => jsonValue(item, depth - 1));
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  const copy: Record<string, JsonValue> = {};
  for (const [key, item] of Object.entries(value)) {
    if (key === "__proto__") continue;
    const kept = jsonValue(item, depth - 1);
    if (kept === undefined) return undefined;
    copy[key] = kept;
  }
  return copy;
}
