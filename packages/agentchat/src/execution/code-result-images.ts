import { type CodeResult, displayImage, imageFromBytes } from "@fenced/core";
import type { ImagePart } from "../messages/chat-message.ts";

/** The images among a result's displays, one for each display that has one. */
export function codeResultImages({ displays }: CodeResult): ImagePart[] {
  return displays.flatMap((display) => {
    const image = displayImage(display);
    if (image === undefined) return [];
    const { bytes, mediaType, path } = image;
    return [{ ...imageFromBytes(bytes, mediaType), ...(path === undefined ? {} : { path }) }];
  });
}
