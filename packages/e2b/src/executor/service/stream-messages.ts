import { ByteQueue, parseJson } from "@fenced/core";
import * as z from "zod";
import { ServiceProblem } from "./answer-body.ts";

/** Maximum length of a message, in bytes. */
const longestMessage = 16_777_216;
const headerBytes = 5;
const [compressedFlag, endFlag] = [1, 2];

const endSchema = z.object({ error: z.object({ code: z.string(), message: z.string().default("") }).optional() });

/**
 * Yields the messages of a stream of the Connect protocol.
 *
 * @throws ServiceProblem if the service ends it with an error; other errors if it is broken.
 */
export async function* streamMessages(body: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, void, void> {
  const bytes = new ByteQueue();
  let head: { readonly flags: number; readonly length: number } | undefined;
  for await (const piece of body) {
    bytes.add(piece);
    for (;;) {
      if (!head) {
        if (bytes.length < headerBytes) break;
        head = headOf(bytes.take(headerBytes));
      }
      if (bytes.length < head.length) break;
      const message = parseJson(bytes.take(head.length));
      if ((head.flags & endFlag) !== 0) {
        const { error } = endSchema.parse(message);
        if (error) throw new ServiceProblem(0, `${error.code}: ${error.message.slice(0, 500)}`);
        return;
      }
      head = undefined;
      yield message;
    }
  }
  throw new Error("the connection broke");
}

function headOf(header: Uint8Array): { readonly flags: number; readonly length: number } {
  const view = new DataView(header.buffer, header.byteOffset, headerBytes);
  const [flags, length] = [view.getUint8(0), view.getUint32(1)];
  if ((flags & compressedFlag) !== 0) throw new Error("the service sends compressed messages");
  if (length > longestMessage) throw new Error("a message of the service is too long");
  return { flags, length };
}
