// A plain round-robin proxy, as nginx or a cloud's load balancer is one.
import { createServer, request, type Server } from "node:http";

/** Sends each request to the next of these servers that accepts connections. */
export function roundRobin(targets: readonly string[]): Server {
  let next = 0;
  return createServer((incoming, outgoing) => {
    const attempt = (left: number): void => {
      const target = new URL(incoming.url ?? "/", targets[(next += 1) % targets.length]);
      const { method, headers } = incoming;
      const forwarded = request(target, { method, headers, agent: false }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
        answer.once("error", () => outgoing.destroy());
      });
      forwarded.once("error", (error) => {
        // Nothing was sent to one that does not listen.
        if ("code" in error && error.code === "ECONNREFUSED" && left > 1) attempt(left - 1);
        else if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(502).end();
      });
      forwarded.once("socket", (socket) => socket.once("connect", () => incoming.pipe(forwarded)));
      forwarded.flushHeaders();
      outgoing.once("close", () => forwarded.destroy());
    };
    attempt(targets.length);
  });
}
