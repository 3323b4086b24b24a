import type { Display } from "./display.ts";

/** An image that a model with vision understands. */
export interface DisplayImage {
  readonly bytes: Uint8Array;
  /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  readonly mediaType: string;
  /** Where the executor saved it: an absolute path on the host. */
  readonly path?: string;
}

// What models with vision understand; SVG is not among it.
const imageTypes: Readonly<Record<string, RegExp>> = {
  "image/png": /\.png$/i,
  "image/jpeg": /\.jpe?g$/i,
  "image/gif": /\.gif$/i,
  "image/webp": /\.webp$/i,
};

/** The image of a rich output, if it has one that models understand. */
export function displayImage({ data, files }: Display): DisplayImage | undefined {
  for (const [mediaType, extension] of Object.entries(imageTypes)) {
    const bytes = data[mediaType];
    if (!(bytes instanceof Uint8Array)) continue;
    const path = files.find((file) => extension.test(file));
    return { bytes, mediaType, ...(path === undefined ? {} : { path }) };
  }
  return undefined;
}
