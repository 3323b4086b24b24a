import type { MimeBundle } from "@fenced/core";

/** What a JSON value takes in memory, besides its text, in bytes. */
const valueSize = 40;
const sizes = new WeakMap<MimeBundle, number>();

/**
 * The size of a rich output: binary content in bytes, text in characters, and JSON by what it takes in memory: a list
 * of a million empty objects is short as text.
 */
export function bundleSize(bundle: MimeBundle): number {
  const known = sizes.get(bundle);
  if (known !== undefined) return known;
  const size = Object.values(bundle).reduce<number>((sum, content) => sum + contentSize(content), 0);
  sizes.set(bundle, size);
  return size;
}

/** The size of a JSON value, or of a content of a bundle, by the same rules. */
export function contentSize(content: MimeBundle[string]): number {
  if (typeof content === "string" || content instanceof Uint8Array) return content.length;
  let size = 0;
  const left: unknown[] = [content];
  while (left.length > 0) {
    const value = left.pop();
    size += valueSize;
    if (typeof value === "string") size += value.length;
    if (typeof value !== "object" || value === null) continue;
    for (const [key, inner] of Object.entries(value)) {
      if (!Array.isArray(value)) size += key.length;
      left.push(inner);
    }
  }
  return size;
}
