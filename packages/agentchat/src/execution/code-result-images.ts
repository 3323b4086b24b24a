import { type CodeResult, type Display, imageFromBytes } from "@fenced/core";
import type { ImagePart } from "../messages/chat-message.ts";

// What models with vision understand; SVG is not among it.
const imageTypes: Readonly<Record<string, RegExp>> = {
  "image/png": /\.png$/i,
  "image/jpeg": /\.jpe?g$/i,
  "image/gif": /\.gif$/i,
  "image/webp": /\.webp$/i,
};

/** The images among a result's displays, one for each display that has one. */
export function codeResultImages({ displays }: CodeResult): ImagePart[] {
  return displays.flatMap(toImage);
}

function toImage({ data, files }: Display): ImagePart[] {
  for (const [mediaType, extension] of Object.entries(imageTypes)) {
    const bytes = data[mediaType];
    if (!(bytes instanceof Uint8Array)) continue;
    const path = files.find((file) => extension.test(file));
    return [{ ...imageFromBytes(bytes, mediaType), ...(path === undefined ? {} : { path }) }];
  }
  return [];
}
