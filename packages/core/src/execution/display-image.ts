import type { Display } from "./display.ts";

/** An image in a format that vision models accept. */
export interface DisplayImage {
  readonly bytes: Uint8Array;
  /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  readonly mediaType: string;
  /** The absolute path on the host where the executor saved it; absent if it did not. */
  readonly path?: string;
}

// The formats that vision models accept; SVG is not one of them.
const imageTypes: Readonly<Record<string, RegExp>> = {
  "image/png": /\.png$/i,
  "image/jpeg": /\.jpe?g$/i,
  "image/gif": /\.gif$/i,
  "image/webp": /\.webp$/i,
};

/** Returns the image of a rich output, if it has one in a format that models accept. */
export function displayImage({ data, files }: Display): DisplayImage | undefined {
  for (const [mediaType, extension] of Object.entries(imageTypes)) {
    const bytes = data[mediaType];
    if (!(bytes instanceof Uint8Array)) continue;
    const path = files.find((file) => extension.test(file));
    return { bytes, mediaType, ...(path === undefined ? {} : { path }) };
  }
  return undefined;
}
