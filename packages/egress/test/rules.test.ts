import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { playHost, playTlsHost } from "@fenced/test-support/loopback-hosts";
import { programArguments } from "@fenced/test-support/program-arguments";
import { describe, expect, onTestFinished, test } from "vitest";
import { EgressProxy, type EgressProxyOptions, type NetworkRule } from "../src/index.ts";
import { everything, exchange, startProxy, type TestProxy } from "./support/places.ts";

/** A host with rules, a proxy to it, and the requests that arrived there. */
async function start(
  rule: Partial<NetworkRule>,
  options: Partial<EgressProxyOptions> = {},
): Promise<{ proxy: TestProxy; port: number; arrived: string[]; requests: IncomingMessage[]; ca: string }> {
  const requests: IncomingMessage[] = [];
  const arrived: string[] = [];
  const { port, ca } = await playTlsHost("api.example", (request, response) => {
    requests.push(request);
    arrived.push(`${request.method} ${request.url}`);
    request.resume();
    response.end("answer");
  });
  const proxy = await startProxy({ allow: [{ host: "api.example", ca, ...rule }, "127.0.0.1"], ...options });
  return { proxy, port, arrived, requests, ca };
}

/** A connection through the proxy that trusts only the proxy's authority. */
async function open(proxy: TestProxy, port: number, protocols: string[] = ["http/1.1"]): Promise<TLSSocket> {
  const socket = await proxy.connect();
  socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nHost: api.example:${port}\r\n\r\n`);
  await once(socket, "data");
  const ca = (await proxy.proxy.certificate()) ?? "";
  const secured = connectTls({ socket, servername: "api.example", ca, ALPNProtocols: protocols });
  onTestFinished(() => void secured.destroy());
  await once(secured, "secureConnect");
  return secured;
}

/** The answer to a request that is sent exactly as given. */
async function ask(proxy: TestProxy, port: number, line: string, headers = ""): Promise<string> {
  const socket = await open(proxy, port);
  socket.write(`${line} HTTP/1.1\r\nHost: api.example\r\n${headers}Connection: close\r\n\r\n`);
  return everything(socket);
}

const refused = /^HTTP\/1\.1 403 .* of api\.example is not in this executor's network policy/;

const unclear = [
  "/public/../admin",
  "/public/%2e%2e/admin",
  "/public/.%2E/admin",
  "/public/..%2fadmin",
  "/public/..%5cadmin",
  "/public/..\\admin",
  "/public/..;/admin",
  "/public/..;x=y/admin",
  "/public/%252e%252e/admin",
  "/public/%2e%2e%3bx/admin",
  "/public//admin",
  "//public/x",
  "/public/./x",
  "/public/%00/x",
  "/public/x%0d%0aX:1",
  "/public/%zz",
  "/public/%u002e%u002e/admin",
  "/public/x#/../../admin",
  "/public/%c0%ae%c0%ae/admin",
  "/public/..%c0%afadmin",
];

describe("rules", needs("openssl"), () => {
  test("let through the listed methods and paths, and say what else was asked for", async () => {
    const { proxy, port, arrived } = await start({ methods: ["GET"], paths: ["/repos/acme/**", "/user"] });
    for (const path of ["/repos/acme", "/repos/acme/tool/issues?state=open&x=/../y", "/user"]) {
      expect(await ask(proxy, port, `GET ${path}`)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*answer/s);
    }
    expect(arrived).toEqual(["GET /repos/acme", "GET /repos/acme/tool/issues?state=open&x=/../y", "GET /user"]);
    for (const line of [
      "POST /repos/acme/tool",
      "HEAD /user",
      "GET /repos/acmeX",
      "GET /users",
      "GET /repos/other/x",
    ]) {
      expect(await ask(proxy, port, line)).toMatch(refused);
    }
    expect(arrived).toHaveLength(3);
    expect(proxy.decisions.at(-1)).toEqual({
      allowed: false,
      protocol: "https",
      method: "GET",
      host: "api.example",
      port,
      reason: "GET /repos/other/x of api.example is not in this executor's network policy",
    });
  });

  test("let no path through that hosts may read in several ways", async () => {
    const { proxy, port, arrived } = await start({ paths: ["/public/**", "/**"] });
    for (const path of unclear) {
      const answer = await ask(proxy, port, `GET ${path}`);
      expect([path, answer]).toEqual([
        path,
        expect.stringMatching(/^HTTP\/1\.1 (?:403 .*network policy: its path|400 )/),
      ]);
    }
    expect(await ask(proxy, port, "OPTIONS *")).toMatch(/^HTTP\/1\.1 403 .*its path does not begin with/);
    expect(arrived).toEqual([]);
  });

  test("are about the path that is sent, whatever form the request has", async () => {
    const { proxy, port, arrived } = await start({ paths: ["/public/**"] });
    expect(await ask(proxy, port, `GET https://api.example:${port}/public/x`)).toMatch(/ 200 OK/);
    expect(await ask(proxy, port, `GET https://api.example:${port}/public/../admin`)).toMatch(refused);
    expect(await ask(proxy, port, "GET https://other.example/public/x")).toMatch(/^HTTP\/1\.1 421 /);
    expect(arrived).toEqual(["GET /public/x"]);
  });

  test("let no header name another request", async () => {
    const { proxy, port, arrived } = await start({ methods: ["POST"], paths: ["/public"] });
    for (const header of [
      "X-HTTP-Method-Override: DELETE",
      "X-Original-URL: /admin",
      "x-rewrite-url: /admin",
      "X_HTTP_Method_Override: DELETE",
      "X-Original_URL: /admin",
      "X-Forwarded-Method: DELETE",
      "Destination: /admin",
      "x-amz-copy-source: /bucket/secret",
    ]) {
      expect(await ask(proxy, port, "POST /public", `${header}\r\nContent-Length: 0\r\n`)).toMatch(refused);
    }
    expect(arrived).toEqual([]);
  });

  test("are checked for each request of a connection, also for one that hides in another's body", async () => {
    const { proxy, port, arrived } = await start({ methods: ["POST"], paths: ["/in"] });
    const hidden = "POST /admin HTTP/1.1\r\nHost: api.example\r\nContent-Length: 0\r\n\r\n";
    const first = `POST /in HTTP/1.1\r\nHost: a\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`;
    const last = "POST /admin HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const socket = await open(proxy, port);
    socket.write(first + last);
    const answers = await everything(socket);
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 403"]);
    for (const framing of ["Transfer-Encoding: chunked\r\nContent-Length: 4", "Transfer-Encoding: xchunked"]) {
      expect(await ask(proxy, port, "POST /in", `${framing}\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
    }
    expect(arrived).toEqual(["POST /in"]);
  });

  test("leave HTTP/2 and WebSockets no way around them", async () => {
    const { proxy, port, arrived, requests } = await start({ methods: ["GET"], paths: ["/socket"] });
    const socket = await open(proxy, port, ["h2", "http/1.1"]);
    expect(socket.alpnProtocol).toBe("http/1.1");
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    expect(await everything(socket)).toMatch(/^HTTP\/1\.1 400 /);
    const upgrade =
      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    const opened = await open(proxy, port);
    opened.write(`GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n${upgrade}\r\n`);
    opened.write("GET /admin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await everything(opened);
    expect(arrived.filter((each) => each !== "GET /socket")).toEqual([]);
    expect(requests.map(({ headers }) => headers.upgrade)).not.toContain("websocket");
  });

  test("hold for every way to the host: SOCKS and plain HTTP, and no other protocol", async () => {
    const { proxy, port, arrived } = await start({ methods: ["GET"], paths: ["/public"] });
    const plain = await exchange(
      proxy,
      `CONNECT api.example:${port} HTTP/1.1\r\nHost: a\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n`,
    );
    expect(plain).not.toContain("answer");
    const seen: string[] = [];
    const other = await playHost((request, response) => {
      seen.push(request.url ?? "");
      response.end("plain");
    });
    const get = (path: string) =>
      exchange(proxy, `GET http://api.example:${other}${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    expect(await get("/public")).toContain("plain");
    expect(await get("/admin")).toMatch(refused);
    expect(await get("/public/%2e%2e%2fadmin")).toMatch(refused);
    expect(seen).toEqual(["/public"]);
    expect(arrived).toEqual([]);
  });

  test("go with credentials, and are checked before these are read", async () => {
    let reads = 0;
    const credential = (host: string, ca: string) => ({
      host,
      header: "authorization",
      value: () => `token ${(reads += 1)}`,
      ca,
    });
    const { port, ca } = await playTlsHost("api.example", (request, response) =>
      response.end(request.headers.authorization),
    );
    const allow = [{ host: "api.example", methods: ["GET"] }, "127.0.0.1"];
    const proxy = await startProxy({ allow, credentials: [credential(`api.example:${port}`, ca)] });
    expect(await ask(proxy, port, "DELETE /")).toMatch(refused);
    expect(await ask(proxy, port, "GET /")).toContain("token 1");
  });

  test("leave other hosts, and hosts that are also listed by themselves, to unread tunnels", async () => {
    const { proxy, port, arrived } = await start({ methods: ["GET"], host: "never.example" });
    expect(await proxy.proxy.certificate()).toContain("BEGIN CERTIFICATE");
    const allow = ["api.example", { host: "*.example", paths: ["/x"] }, "127.0.0.1"];
    const both = await startProxy({ allow });
    const socket = await both.connect();
    socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await once(socket, "data");
    const secured = connectTls({ socket, servername: "api.example", rejectUnauthorized: false });
    onTestFinished(() => void secured.destroy());
    await once(secured, "secureConnect");
    expect(secured.getPeerCertificate().issuer.CN).not.toMatch(/^Fenced session/);
    secured.write("PUT /y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await everything(secured);
    expect(arrived).toEqual(["PUT /y"]);
  });

  test("may come from a function, whose invalid entries allow nothing", async () => {
    const entries: unknown[] = [{ host: "api.example", method: ["GET"] }, "127.0.0.1"];
    const { port, ca } = await playTlsHost("api.example", (_, response) => response.end("answer"));
    const proxy = await startProxy({ allow: () => entries as string[] });
    const tunnel = `CONNECT api.example:${port} HTTP/1.1\r\nHost: a\r\n\r\n`;
    expect(await proxy.proxy.certificate()).toBeUndefined();
    expect(await exchange(proxy, tunnel)).toMatch(/^HTTP\/1\.1 403 /);
    entries[0] = { host: "api.example", methods: ["GET"], ca };
    expect(await ask(proxy, port, "GET /")).toContain("answer");
    expect(await ask(proxy, port, "PUT /")).toMatch(refused);
  });

  test("from a function hold for open connections, with the authority that they name now", async () => {
    const [{ port, ca }, other] = await Promise.all([
      playTlsHost("api.example", (_, response) => response.end("answer")),
      playTlsHost("api.example", () => {}),
    ]);
    let trusted = ca;
    const proxy = await startProxy({
      allow: () => [{ host: "api.example", methods: ["GET"], ca: trusted }, "127.0.0.1"],
    });
    const socket = await open(proxy, port);
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 200 /);
    trusted = other.ca;
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(await everything(socket)).toContain("HTTP/1.1 502 could not connect securely to api.example");
  });

  test("name authorities besides those of NODE_EXTRA_CA_CERTS", async () => {
    const [{ port, ca }, other] = await Promise.all([
      playTlsHost("api.example", (_, response) => response.end("answer")),
      playTlsHost("other.example", () => {}),
    ]);
    const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const file = join(directory, "ca.pem");
    await writeFile(file, ca);
    const program = new URL("./fixtures/ask-through-proxy.ts", import.meta.url);
    const words = [...programArguments(program), String(port), other.ca];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: file };
    const { stdout } = await promisify(execFile)(process.execPath, words, { env });
    expect(stdout).toMatch(/^HTTP\/1\.1 200 OK\r\n.*answer/s);
  });
});

test.each([
  [{ host: "a.example", method: ["GET"] }, /is unknown; a rule has host, methods, paths, ca/],
  [{ host: "a.example", ca: "-----BEGIN CERTIFICATE-----" }, /has no effect without `methods` or `paths`/],
  [{ host: "a.example", methods: ["get"] }, /must list methods in capital letters/],
  [{ host: "a.example", methods: [] }, /must list methods/],
  [{ host: "a.example", paths: ["v1"] }, /one does not begin with "\/"/],
  [{ host: "a.example", paths: ["/a/../b"] }, /one has a part that is `\.` or `\.\.`/],
  [{ host: "a.example", paths: ["/a?b=c"] }, /one has a backslash, `#` or `\?`/],
  [{ host: "https://a.example" }, /must be a host name or an address/],
  [7, /must be a host or a rule/],
])("the rule %j is refused", (rule, message) => {
  const allow = [rule] as unknown as string[];
  expect(() => new EgressProxy({ allow })).toThrow(InvalidInputError);
  expect(() => new EgressProxy({ allow })).toThrow(message);
});
