import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";

/** An address that leads to a daemon. */
export interface DaemonRelay extends AsyncDisposable {
  /** As in `DOCKER_HOST`: TCP on the loopback interface. */
  readonly address: string;
}

/** What a test does when requests pass. */
export interface RelayHooks {
  /** Called before a request is passed on. */
  readonly before?: (incoming: IncomingMessage) => void;
  /** Called when the daemon has answered, before the answer is passed on. */
  readonly answered?: (incoming: IncomingMessage) => void;
}

/** The daemon at `socketPath`, over TCP. */
export async function relayDaemon(socketPath: string, hooks: RelayHooks = {}): Promise<DaemonRelay> {
  const server = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    hooks.before?.(incoming);
    const passed = request({ socketPath, method, path, headers }, (answer) => {
      hooks.answered?.(incoming);
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  server.on("upgrade", ({ method, url: path, headers }, client) => {
    const passed = request({ socketPath, method, path, headers });
    passed.on("upgrade", (answer, upstream) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
      client.write(`HTTP/1.1 101 UPGRADED\r\n${lines.join("")}\r\n`);
      upstream.pipe(client);
      client.pipe(upstream);
      client.on("error", () => upstream.destroy());
      client.on("close", () => upstream.destroy());
      upstream.on("error", () => client.destroy());
    });
    passed.on("error", () => client.destroy());
    passed.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    address: `tcp://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
