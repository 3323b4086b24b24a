/** Maximum bytes of one message of a server; the SDK's limit for standard output. */
const mostMessageBytes = 10_485_760;
const tooLong = `a message has more than ${mostMessageBytes} bytes`;

const [lineFeed, carriageReturn] = [10, 13];

/** `fetch` for a server that may send endlessly: fails when a response, or an event of a stream, exceeds the limit. */
export async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(limited(isStream)), { status, statusText, headers });
}

/** @param isStream - apply the limit to each event, which ends with an empty line. */
function limited(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  let isEmptyLine = true;
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of isStream ? chunk : []) {
        size += 1;
        if (byte === lineFeed && isEmptyLine) size = 0;
        if (byte !== carriageReturn) isEmptyLine = byte === lineFeed;
      }
      if (!isStream) size += chunk.byteLength;
      if (size > mostMessageBytes) controller.error(new RangeError(tooLong));
      else controller.enqueue(chunk);
    },
  });
}
