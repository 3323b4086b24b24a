import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { refuse } from "./refuse.ts";

/** Serves a handler of standard requests, which never rejects, at one path of a server of Node. */
export function nodeListener(path: string, handler: (request: Request) => Promise<Response>): RequestListener {
  return (incoming, outgoing) => {
    const answer = async (): Promise<void> => {
      const [place] = (incoming.url ?? "").split("?");
      const response = place === path ? await handler(standardRequest(incoming, outgoing)) : refuse(notFound(path));
      await send(response, incoming, outgoing);
    };
    // Nobody is left to be told: the client has gone, or sent what is no request.
    answer().catch(() => outgoing.destroy());
  };
}

function notFound(path: string): Parameters<typeof refuse>[0] {
  return { status: 404, message: `Not found; MCP is served at ${path}.` };
}

function standardRequest(incoming: IncomingMessage, outgoing: ServerResponse): Request {
  const { method = "GET", url = "/" } = incoming;
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(`http://localhost${url}`), {
    method,
    headers,
    signal: gone.signal,
    // To destroy what was not read of it would destroy the answer.
    ...(hasBody ? { body: ReadableStream.from(incoming.iterator({ destroyOnReturn: false })), duplex: "half" } : {}),
  });
}

async function send(response: Response, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  outgoing.statusCode = response.status;
  outgoing.setHeaders(response.headers);
  // What was not read of the request would be taken for the next one.
  if (!incoming.complete) outgoing.setHeader("connection", "close");
  if (response.body === null) {
    outgoing.end();
    return;
  }
  // A stream may have nothing to say for long.
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(response.body), outgoing);
}
