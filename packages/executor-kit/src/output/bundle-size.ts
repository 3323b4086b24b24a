import type { MimeBundle } from "@fenced/core";

/** The size of a rich output: binary content in bytes, everything else in characters. */
export function bundleSize(bundle: MimeBundle): number {
  return Object.values(bundle).reduce<number>((sum, content) => sum + sizeOf(content), 0);
}

function sizeOf(content: MimeBundle[string]): number {
  if (typeof content === "string" || content instanceof Uint8Array) return content.length;
  return JSON.stringify(content).length;
}
