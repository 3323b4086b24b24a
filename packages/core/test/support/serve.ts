import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { onTestFinished } from "vitest";

/** Serves the responses of `answer` over real HTTP until the test is over; @returns the URL. */
export async function serve(answer: (request: Request) => Response): Promise<string> {
  const server = createServer(({ method, headers }, reply) => {
    const given = new Headers();
    for (const [name, value] of Object.entries(headers)) given.set(name, String(value));
    const response = answer(
      new Request("http://localhost/", { ...(method !== undefined && { method }), headers: given }),
    );
    reply.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body === null) reply.end();
    else pipeline(Readable.fromWeb(response.body), reply).catch(() => {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
}
