import { type CodeResult, displayImage, imageFromBytes } from "@fenced/core";
import type { ImagePart } from "../messages/chat-message.ts";

/** The images in a result's displays, at most one per display. */
export function codeResultImages({ displays }: CodeResult): ImagePart[] {
  return displays.flatMap((display) => {
    const image = displayImage(display);
    if (image === undefined) return [];
    const { bytes, mediaType, path } = image;
    return [{ ...imageFromBytes(bytes, mediaType), ...(path === undefined ? {} : { path }) }];
  });
}
