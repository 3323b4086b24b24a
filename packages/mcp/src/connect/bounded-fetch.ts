import { MessageMeter } from "../message-limits.ts";

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
  let isEmptyLine = true;
  const meter = new MessageMeter();
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of chunk) {
        meter.add(byte);
        if (!isStream) continue;
        if (byte === lineFeed && isEmptyLine) meter.next();
        if (byte !== carriageReturn) isEmptyLine = byte === lineFeed;
      }
      const { excess } = meter;
      if (excess === undefined) controller.enqueue(chunk);
      else controller.error(excess);
    },
  });
}
