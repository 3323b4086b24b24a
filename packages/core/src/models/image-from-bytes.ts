import type { ImageContent } from "./model-messages.ts";

/**
 * Creates an image message part that contains the image's bytes.
 *
 * @param mediaType - the image's MIME type, e.g. `"image/png"`.
 */
export function imageFromBytes(bytes: Uint8Array, mediaType: string): ImageContent {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { type: "image", url: `data:${mediaType};base64,${base64}` };
}
