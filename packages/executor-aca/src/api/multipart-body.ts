import { randomUUID } from "node:crypto";
import { InvalidInputError } from "@fenced/core";
import type { FileContent } from "@fenced/executor-kit";

/** A `multipart/form-data` body with one file, streamed. */
export interface MultipartBody {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: () => AsyncIterable<Uint8Array>;
}

/**
 * A body that uploads `content` in the field `file`.
 *
 * @throws InvalidInputError if the name contains a backslash: some servers treat it as an escape, and store a
 * different name.
 */
export function multipartBody(name: string, content: FileContent): MultipartBody {
  if (name.includes("\\")) {
    throw new InvalidInputError(`The file name ${JSON.stringify(name)} contains a backslash`, {
      remedy: "Rename the file.",
    });
  }
  const boundary = `fenced-${randomUUID()}`;
  // HTML's form submission writes names this way.
  const escaped = name.replaceAll(/["\r\n]/g, (character) => encodeURIComponent(character));
  const head = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${escaped}"\r\n` +
      `Content-Type: application/octet-stream\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    headers: {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": String(head.length + content.size + tail.length),
    },
    async *body() {
      yield head;
      yield* content;
      yield tail;
    },
  };
}
