import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { FileNotFoundError, InvalidInputError } from "@fenced/core";
import type { FileContent } from "../api/session-api.ts";
import { uploadLimit } from "../api/wire-types.ts";

/**
 * A local file, to be streamed.
 *
 * @throws FileNotFoundError if it is not there, InvalidInputError if it is no file or too large for the service.
 */
export async function localContent(file: string): Promise<FileContent> {
  const stats = await stat(file).catch((cause: unknown) => {
    throw new FileNotFoundError(`There is no local file ${JSON.stringify(file)} to upload`, {
      remedy: "Check the path; nothing was uploaded.",
      cause,
    });
  });
  if (!stats.isFile()) {
    throw new InvalidInputError(`${JSON.stringify(file)} is not a regular file`, {
      remedy: "Upload files one by one; nothing was uploaded.",
    });
  }
  assertSize(file, stats.size);
  return {
    length: stats.size,
    async *read() {
      // What is added to the file meanwhile would not fit the length that was announced.
      if (stats.size > 0) yield* createReadStream(file, { end: stats.size - 1 });
    },
  };
}

/** @throws InvalidInputError if the service takes no file of this size. */
export function assertSize(file: string, size: number): void {
  if (size <= uploadLimit) return;
  throw new InvalidInputError(`${JSON.stringify(file)} has ${size} bytes, and a session takes files of up to 128 MB`, {
    remedy: "Split it, or compress it and unpack it in a block.",
  });
}
