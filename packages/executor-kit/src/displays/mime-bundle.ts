import type { JsonValue, MimeBundle } from "@fenced/core";
import { jsonSize, setBundleSize } from "../output/bundle-size.ts";

/** Limits for a bundle, far above what libraries produce. Anything beyond them is left out. */
const [mostTypes, mostDepth] = [64, 100];
const mimeType = /^[a-z0-9][\w.+-]{0,99}\/[\w.+-]{1,99}(?:;[\w .+=;"-]{1,99})?$/i;

/**
 * A bundle from a kernel, with binary content as bytes instead of base64, and lines joined. Code decides what it
 * contains, so keys that are not MIME types, and values that do not fit their type, are left out. JSON is taken over
 * without a copy: do not use `data` again.
 */
export function mimeBundle(data: unknown): MimeBundle {
  if (typeof data !== "object" || data === null) return {};
  const types = Object.entries(data).filter(([type]) => mimeType.test(type));
  let bytes = 0;
  const contents = types.slice(0, mostTypes).flatMap(([type, given]) => {
    const { content, size } = contentOf(type, given);
    bytes += content === undefined ? 0 : size;
    return content === undefined ? [] : [[type, content] as const];
  });
  const bundle: MimeBundle = Object.fromEntries(contents);
  setBundleSize(bundle, bytes);
  return bundle;
}

/** One type's content, and what it takes; see `bundleSize`. */
interface Measured {
  readonly content?: string | Uint8Array | JsonValue;
  readonly size: number;
}

const nothing: Measured = { size: 0 };

function contentOf(type: string, given: unknown): Measured {
  const name = type.toLowerCase().replace(/;.*/, "");
  if (name.endsWith("json")) return jsonContent(given);
  // Some kernels send text as a list of lines, as notebooks are stored.
  const isLines = Array.isArray(given) && given.every((line) => typeof line === "string");
  const text: unknown = isLines ? given.join("") : given;
  if (typeof text === "string") {
    const content = isBinary(name) ? decodeBase64(text) : text;
    return { content, size: content.length };
  }
  return name.startsWith("application/") && !isBinary(name) ? jsonContent(text) : nothing;
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
  if (!isBase64(text)) return text;
  // Space for the line breaks, too, which are ignored.
  const bytes = new Uint8Array(Buffer.byteLength(text, "base64"));
  const length = Buffer.from(bytes.buffer).write(text, "base64");
  return length === bytes.length ? bytes : bytes.slice(0, length);
}

/** Not one expression: blanks, which may stand at its end, too, would take it a time that grows with their number's square. */
function isBase64(text: string): boolean {
  const whole = text.trimEnd();
  const padding = /={1,2}$/.exec(whole.slice(-2))?.[0].length ?? 0;
  return !/[^A-Za-z0-9+/\s]/.test(whole.slice(0, whole.length - padding));
}

/** Nothing if the value is nested too deeply. It is not copied, because that would take longer than parsing it. */
function jsonContent(value: unknown): Measured {
  const size = jsonSize(value, mostDepth, dropPrototype);
  if (!isMeasured(value, size)) return nothing;
  return { content: value, size: typeof value === "string" ? value.length : size };
}

/** Removes the key that would set the prototype when the object is copied. */
function dropPrototype(part: object): void {
  if (Object.hasOwn(part, "__proto__")) Reflect.deleteProperty(part, "__proto__");
}

function isMeasured(_value: unknown, size: number): _value is JsonValue {
  return size !== Infinity;
}
