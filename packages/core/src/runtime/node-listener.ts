import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * Serves a handler of standard requests with Node's own server. Its request's signal is aborted when the client has gone; a
 * response whose body fails breaks the connection, by which the client notices that it is not complete.
 *
 * @param handler - must not reject; if it does, the connection is broken.
 *
 * @example
 * createServer(nodeListener(async (request) => new Response(`You asked for ${request.url}`))).listen(3000);
 */
export function nodeListener(handler: (request: Request) => Promise<Response>): RequestListener {
  return (incoming, outgoing) => {
    const answer = async (): Promise<void> =>
      send(await handler(standardRequest(incoming, outgoing)), incoming, outgoing);
    // No one is left to tell: the client has gone, or sent an invalid request.
    answer().catch(() => outgoing.destroy());
  };
}

/** The headers of a request or an answer of Node, each with all of its values. */
export function standardHeaders({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  return headers;
}

function standardRequest(incoming: IncomingMessage, outgoing: ServerResponse): Request {
  const { method = "GET", url = "/" } = incoming;
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(`http://localhost${url}`), {
    method,
    headers: standardHeaders(incoming),
    signal: gone.signal,
    // Destroying the unread rest of the body would destroy the response.
    ...(hasBody ? { body: ReadableStream.from(incoming.iterator({ destroyOnReturn: false })), duplex: "half" } : {}),
  });
}

async function send(response: Response, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  outgoing.statusCode = response.status;
  outgoing.setHeaders(response.headers);
  // The unread rest of the request would be taken for the next one.
  if (!incoming.complete) outgoing.setHeader("connection", "close");
  if (response.body === null) {
    outgoing.end();
    return;
  }
  // A stream may be silent for a long time.
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(response.body), outgoing);
}
