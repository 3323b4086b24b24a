import { once } from "node:events";
import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createServer, request, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** An address that leads to a daemon. */
export interface DaemonRelay extends AsyncDisposable {
  /** As in `DOCKER_HOST`: TCP on the loopback interface. */
  readonly address: string;

  /** How many streams of programs in containers there are. */
  readonly streams: number;

  /** Breaks the streams of programs in containers; returns how many there were. */
  cut(): number;

  /** From now on, refuses requests and breaks those under way; or lets them pass again. */
  refuse(isRefusing: boolean): void;
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
  const streams = new Set<Duplex>();
  let isRefused = false;
  const cut = (): number => {
    const { size } = streams;
    for (const each of streams) each.destroy();
    return size;
  };
  const server = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    if (isRefused) {
      outgoing.destroy();
      return;
    }
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
  server.on("upgrade", ({ method, url: path, headers }, client, head) => {
    if (isRefused) {
      client.destroy();
      return;
    }
    streams.add(client);
    client.on("close", () => streams.delete(client));
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
    void bodyOf(client, head, Number(headers["content-length"] ?? 0)).then((body) => passed.end(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    address: `tcp://127.0.0.1:${address.port}`,
    get streams() {
      return streams.size;
    },
    cut,
    refuse(isRefusing) {
      isRefused = isRefusing;
      if (!isRefusing) return;
      cut();
      server.closeAllConnections();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The body of a request that asks for another protocol, which the server leaves on its connection. */
async function bodyOf(client: Duplex, head: Buffer, size: number): Promise<Buffer> {
  let body = head;
  while (body.length < size) {
    await once(client, "readable");
    const more: unknown = client.read();
    if (Buffer.isBuffer(more)) body = Buffer.concat([body, more]);
  }
  return body;
}

/**
 * What hostile code that can write to the directory above does at the worst moment: while a container starts, a link to
 * another directory, with all that is in `directory`, takes its place.
 */
export function replaceWhileMounted(directory: string): RelayHooks {
  const [aside, other] = [`${directory}-aside`, `${directory}-other`];
  const isStart = ({ url = "" }: IncomingMessage): boolean => /\/containers\/[^/]+\/start/.test(url);
  return {
    before: (incoming) => {
      if (!isStart(incoming) || existsSync(aside)) return;
      renameSync(directory, aside);
      mkdirSync(other);
      for (const name of readdirSync(aside)) linkSync(`${aside}/${name}`, `${other}/${name}`);
      symlinkSync(other, directory);
    },
    answered: (incoming) => {
      if (!isStart(incoming) || !existsSync(aside)) return;
      rmSync(directory);
      renameSync(aside, directory);
    },
  };
}
