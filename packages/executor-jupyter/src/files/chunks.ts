import { InvalidInputError } from "@fenced/core";
import type { FileContent } from "@fenced/executor-kit";

/** A piece of content, and whether it is the last. */
export interface Chunk {
  readonly bytes: Buffer;
  readonly last: boolean;
}

/**
 * Splits a file's content into pieces of `size` bytes; only the last may be shorter. There is at least one piece,
 * which may be empty.
 *
 * @throws InvalidInputError in place of the last piece if the content does not have its announced length.
 */
export async function* chunksOf(content: FileContent, size: number): AsyncGenerator<Chunk, void, void> {
  let waiting: Buffer[] = [];
  let [length, total] = [0, 0];
  for await (const piece of content) {
    total += piece.length;
    for (let rest = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength); rest.length > 0;) {
      if (length === size) {
        yield { bytes: Buffer.concat(waiting), last: false };
        [waiting, length] = [[], 0];
      }
      const part = rest.subarray(0, size - length);
      waiting.push(part);
      length += part.length;
      rest = rest.subarray(part.length);
    }
  }
  if (total !== content.size) {
    throw new InvalidInputError(
      `The uploaded file has ${total} bytes instead of ${content.size}: it changed during the upload`,
      {
        remedy: "Upload it again; the file in the workspace is unchanged.",
      },
    );
  }
  yield { bytes: Buffer.concat(waiting), last: true };
}
