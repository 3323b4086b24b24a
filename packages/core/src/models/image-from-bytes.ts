import type { ImageContent } from "./model-messages.ts";

/**
 * An image message part that carries its bytes with it.
 *
 * @param mediaType - the image's MIME type, e.g. `"image/png"`.
 */
export function imageFromBytes(bytes: Uint8Array, mediaType: string): ImageContent {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { type: "image", url: `data:${mediaType};base64,${base64}` };
}
