import { randomUUID } from "node:crypto";
import type { FileContent } from "./session-api.ts";

/** A `multipart/form-data` body with one file, streamed. */
export interface MultipartBody {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: () => AsyncIterable<Uint8Array>;
}

/** The body that uploads `content` in the field `file`. */
export function multipartBody(name: string, content: FileContent): MultipartBody {
  const boundary = `fenced-${randomUUID()}`;
  // As HTML's form submission writes names.
  const escaped = name.replaceAll(/["\r\n]/g, (character) => encodeURIComponent(character));
  const head = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${escaped}"\r\n` +
      `Content-Type: application/octet-stream\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    headers: {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": String(head.length + content.length + tail.length),
    },
    async *body() {
      yield head;
      yield* content.read();
      yield tail;
    },
  };
}
