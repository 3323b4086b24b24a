import type { JsonValue } from "@fenced/core";

/**
 * One message of a stream of the Connect protocol.
 *
 * @param flags - 2 for the one that ends the stream.
 */
export function envelope(flags: number, message: JsonValue): Buffer<ArrayBuffer> {
  const text = Buffer.from(JSON.stringify(message));
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(text.length, 1);
  return Buffer.concat([header, text]);
}
