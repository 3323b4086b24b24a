import { maxJsonDepth, type MimeBundle } from "@fenced/core";

/** What a JSON value takes in memory, besides its text, in bytes. */
const valueSize = 40;
const sizes = new WeakMap<MimeBundle, number>();

/**
 * The size of a rich output: binary content in bytes, text in characters, and JSON by what it takes in memory: a list
 * of a million empty objects is short as text. Infinite for a bundle with something else.
 */
export function bundleSize(bundle: MimeBundle): number {
  const known = sizes.get(bundle);
  if (known !== undefined) return known;
  const size = Object.values(bundle).reduce<number>((sum, content) => sum + contentSize(content), 0);
  sizes.set(bundle, size);
  return size;
}

/** Records the size of a bundle whose contents were measured already. */
export function setBundleSize(bundle: MimeBundle, size: number): void {
  sizes.set(bundle, size);
}

/** The size of a JSON value, or of a content of a bundle, by the same rules. */
export function contentSize(content: MimeBundle[string]): number {
  if (typeof content === "string" || content instanceof Uint8Array) return content.length;
  return jsonSize(content, maxJsonDepth);
}

/**
 * The same for a JSON value; infinite if it is not one, or nested deeper than `mostDepth`.
 *
 * @param enter - called with each object before it is read.
 */
export function jsonSize(value: unknown, mostDepth: number, enter: (part: object) => void = () => {}): number {
  if (typeof value === "string") return valueSize + value.length;
  if (value === null || typeof value === "boolean" || Number.isFinite(value)) return valueSize;
  if (typeof value !== "object" || mostDepth === 0) return Infinity;
  let size = valueSize;
  if (Array.isArray(value)) {
    for (const item of value) size += jsonSize(item, mostDepth - 1, enter);
    return size;
  }
  enter(value);
  // `Object.entries` takes three times as long for an object with thousands of keys.
  for (const key of Object.keys(value)) size += key.length + jsonSize(Reflect.get(value, key), mostDepth - 1, enter);
  return size;
}
