import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { rawRequest } from "./support/raw-request.ts";
import { startServer, type TestServer } from "./support/start-server.ts";

const program = await readFile(new URL("./fixtures/port-program.py", import.meta.url), "utf8");
const domain = "sandboxes.example";
const saidSchema = z.object({
  method: z.string(),
  path: z.string(),
  headers: z.record(z.string(), z.string()),
  names: z.array(z.string()),
  received: z.number(),
  sha256: z.string(),
});

function tokenOf(sandbox: Sandbox): string {
  return String(sandbox.trafficAccessToken);
}

async function withProgram(server: TestServer, options: object = {}): Promise<Sandbox> {
  const sandbox = await Sandbox.create("base", { ...server.client, ...options });
  await sandbox.files.write("program.py", program);
  const listening = new Promise<string>((resolve, reject) => {
    let said = "";
    const onStdout = (piece: string): void => {
      said += piece;
      if (said.endsWith("\n")) resolve(said);
    };
    const running = { background: true, timeoutMs: 0, onStdout } as const;
    sandbox.commands.run("python3 program.py", running).then((command) => {
      // It ends with its sandbox.
      command.wait().catch(() => {});
    }, reject);
  });
  expect(await listening).toBe("listening\n");
  return sandbox;
}

describe("ports of sandboxes", needs("bubblewrap", "python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  beforeAll(async () => {
    // Nothing in it reaches any network.
    const base = () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network: "none" });
    server = await startServer({ templates: { base }, domain });
    sandbox = await withProgram(server);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const hostOf = (port: number, of = sandbox): string => `${port}-${of.sandboxId}.${domain}`;
  const ask = async (
    path: string,
    options: { method?: string; port?: number; headers?: object; body?: Buffer } = {},
  ) => {
    const { method = "GET", port = 8000, headers = {}, body } = options;
    const asking = request(`${server.url}${path}`, { method, headers: { host: hostOf(port), ...headers } });
    asking.end(body);
    const [answer]: IncomingMessage[] = await once(asking, "response");
    if (!answer) throw new Error("there is no answer");
    return answer;
  };
  const said = async (answer: IncomingMessage) => saidSchema.parse(JSON.parse(await text(answer)));

  it("answer by their host name, without a network, as the program does", async () => {
    const answer = await ask("/a%20b?c=d&e", {
      headers: { "x-own": "1", "e2b-traffic-access-token": tokenOf(sandbox) },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    const { method, path, headers, names } = await said(answer);
    expect([method, path, headers["host"], headers["x-own"]]).toEqual(["GET", "/a%20b?c=d&e", hostOf(8000), "1"]);
    expect(headers).not.toHaveProperty("e2b-traffic-access-token");
    // Many small programs compare names as text.
    expect(names).toEqual(expect.arrayContaining(["Host", "X-Own"]));
    const head = await ask("/", { method: "HEAD" });
    expect([head.statusCode, Number(head.headers["content-length"]) > 0, await text(head)]).toEqual([200, true, ""]);
    expect((await ask("/empty")).resume().statusCode).toBe(204);
  });

  it("take bodies of known and of unknown length", async () => {
    const body = Buffer.alloc(5_000_000, "0123456789abcde");
    const sha256 = createHash("sha256").update(body).digest("hex");
    for (const headers of [{ "content-length": body.length }, { "transfer-encoding": "chunked" }]) {
      for (const method of ["POST", "DELETE"]) {
        expect(await said(await ask("/", { method, headers, body }))).toMatchObject({
          method,
          received: 5_000_000,
          sha256,
        });
      }
    }
  });

  it("get 502 in E2B's form where no program listens, or none that speaks HTTP", async () => {
    for (const [path, port] of [
      ["/", 8001],
      ["/broken", 8000],
    ] as const) {
      const answer = await ask(path, { port });
      expect([answer.statusCode, JSON.parse(await text(answer))]).toEqual([
        502,
        { sandboxId: sandbox.sandboxId, message: expect.stringMatching(/port is not open/), code: 502, port },
      ]);
    }
    for (const port of [0, 70_000]) expect((await ask("/", { port })).resume().statusCode).toBe(502);
    await expect(text(await ask("/cut"))).rejects.toThrow(/aborted/);
  });

  it("let go of programs that never answer, once their client leaves", async () => {
    // The program's end of each connection that is open.
    const count = "grep -c ':1F40 .* 01 ' /proc/net/tcp || true";
    await expect.poll(async () => (await sandbox.commands.run(count)).stdout).toBe("0\n");
    const socket = rawRequest(server.url, "GET /silent", { host: hostOf(8000) });
    await expect.poll(async () => (await sandbox.commands.run(count)).stdout).toBe("1\n");
    socket.destroy();
    await expect.poll(async () => (await sandbox.commands.run(count)).stdout).toBe("0\n");
  });

  it("carry WebSockets, and nothing after an answer that is none", async () => {
    const upgrade = { host: hostOf(8000), connection: "Upgrade", upgrade: "websocket" };
    const socket = rawRequest(server.url, "GET /socket", upgrade);
    let heard = "";
    socket.on("data", (piece: Buffer) => void (heard += piece.toString("latin1")));
    await expect.poll(() => heard).toMatch(/^HTTP\/1\.1 101 [^]*sec-websocket-accept: yes\r\n[^]*\r\n\r\nwelcome\n$/);
    socket.write("one\ntwo\n");
    await expect.poll(() => heard).toMatch(/welcome\n<one>\n<two>\n$/);
    socket.destroy();

    const closed = async (path: string, headers: Record<string, string>): Promise<string> => {
      const other: Socket = rawRequest(server.url, `GET ${path}`, headers);
      other.write(`GET /health HTTP/1.1\r\nhost: 49983-${sandbox.sandboxId}.${domain}\r\n\r\n`);
      return text(other);
    };
    const refused = await closed("/", upgrade);
    expect(refused).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n/);
    expect(refused.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(await closed("/", { ...upgrade, host: hostOf(8001) })).toMatch(/^HTTP\/1\.1 502 [^]*not open/);
    expect(await closed("/", { ...upgrade, upgrade: "h2c" })).toMatch(/^HTTP\/1\.1 502 [^]*to WebSockets/);
    expect(await closed("/", { ...upgrade, host: "api.sandboxes.example" })).toMatch(/^HTTP\/1\.1 502 /);
  });

  it("tell programs another host name, if the client wants that", async () => {
    const mask = (maskRequestHost: string) => withProgram(server, { network: { maskRequestHost } });
    const own = await mask("localhost:${PORT}");
    expect(await own.getInfo()).toMatchObject({
      network: { allowPublicTraffic: true, maskRequestHost: "localhost:${PORT}" },
    });
    expect((await said(await ask("/", { headers: { host: hostOf(8000, own) } }))).headers["host"]).toBe(
      "localhost:8000",
    );
    const upgrade = { host: hostOf(8000, own), connection: "Upgrade", upgrade: "websocket" };
    expect(await text(rawRequest(server.url, "GET /", upgrade))).toContain('"host": "localhost:8000"');
    await own.kill();
    for (const wrong of ["a b", "a\r\nx: y", "a:${ANY}", "a".repeat(301)]) {
      await expect(mask(wrong)).rejects.toThrow(/maskRequestHost/);
    }
  });

  it("are for those with the token only, without public traffic, and end with their sandbox", async () => {
    const own = await withProgram(server, { network: { allowPublicTraffic: false } });
    const headers = { host: hostOf(8000, own) };
    for (const token of [undefined, "wrong", tokenOf(sandbox)]) {
      const given = token === undefined ? {} : { "e2b-traffic-access-token": token };
      const answer = await ask("/", { headers: { ...headers, ...given } });
      expect([answer.statusCode, JSON.parse(await text(answer))]).toMatchObject([403, { sandboxId: own.sandboxId }]);
    }
    const right = { ...headers, "e2b-traffic-access-token": tokenOf(own) };
    expect((await ask("/", { headers: right })).resume().statusCode).toBe(200);
    const socket = rawRequest(server.url, "GET /socket", { ...right, connection: "Upgrade", upgrade: "websocket" });
    await once(socket, "data");
    await own.kill();
    if (!socket.closed) await once(socket.resume(), "close");
    expect((await ask("/", { headers: right })).resume().statusCode).toBe(502);
  });
});

it("do not lead to the server's own machine", needs("python3", "bash"), async () => {
  await using server = await startServer({ domain });
  const secret = createServer((_, answer) => answer.end("secret")).listen(0, "127.0.0.1");
  await once(secret, "listening");
  const address = secret.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const sandbox = await Sandbox.create("base", server.client);
  const answer = await fetch(`${server.url}/`, {
    headers: { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": String(port) },
  });
  expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining("own machine")]);
  secret.close();
});
