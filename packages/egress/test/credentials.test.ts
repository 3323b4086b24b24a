import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { needs } from "@fenced/test-support";
import { playHost, playTcp, playTlsHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { EgressProxyOptions, HeaderCredential } from "../src/index.ts";
import { everything, exchange, get, run, startProxy, type TestProxy } from "./support/places.ts";

const secret = "Bearer s3cr3t-value";

/** A host with a credential, a proxy to it, and the requests that arrived there. */
async function start(
  credential: Partial<HeaderCredential> = {},
  options: Partial<EgressProxyOptions> = {},
): Promise<{ proxy: TestProxy; port: number; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const { port, ca } = await playTlsHost("api.example", (request, response) => {
    requests.push(request);
    request.resume();
    response.end("answer");
  });
  const credentials = [
    { host: `api.example:${port}`, header: "authorization", value: () => secret, ca, ...credential },
  ];
  const proxy = await startProxy({ allow: ["api.example", "127.0.0.1"], credentials, ...options });
  return { proxy, port, requests };
}

/** A connection through the proxy that trusts only the proxy's authority. */
async function open(proxy: TestProxy, port: number): Promise<TLSSocket> {
  const socket = await proxy.connect();
  socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nHost: api.example:${port}\r\n\r\n`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  const secured = connectTls({
    socket,
    servername: "api.example",
    ca: (await proxy.proxy.certificate()) ?? "",
    ALPNProtocols: ["h2", "http/1.1"],
  });
  onTestFinished(() => void secured.destroy());
  await once(secured, "secureConnect");
  return secured;
}

const request = (path_: string, headers = "", method = "GET"): string =>
  `${method} ${path_} HTTP/1.1\r\nHost: other.example\r\n${headers}Connection: close\r\n\r\n`;

describe("credentials", needs("openssl"), () => {
  test("the header is added, and replaces the program's own headers of that name", async () => {
    const { proxy, port, requests } = await start();
    const socket = await open(proxy, port);
    expect(socket.alpnProtocol).toBe("http/1.1");
    socket.write(request("/v1?a=b", "Authorization: mine\r\nAUTHORIZATION: again\r\nX-Kept: yes\r\n"));
    const answer = await everything(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n.*answer/s);
    expect(answer).not.toContain("s3cr3t");
    expect(requests.map(({ url, rawHeaders }) => ({ url, rawHeaders }))).toEqual([
      {
        url: "/v1?a=b",
        rawHeaders: ["Host", `api.example:${port}`, "X-Kept", "yes", "authorization", secret, "Connection", "close"],
      },
    ]);
    expect(proxy.decisions).toEqual([
      { allowed: true, protocol: "https", method: "GET", host: "api.example", port, address: "127.0.0.1" },
    ]);
  });

  test("the program cannot remove the header with Connection, nor have it echoed by TRACE", async () => {
    const { proxy, port, requests } = await start();
    const named = await open(proxy, port);
    named.write(request("/", "Connection: authorization\r\n"));
    expect(await everything(named)).toContain("answer");
    expect(requests[0]?.headers.authorization).toBe(secret);
    const traced = await open(proxy, port);
    traced.write(request("/", "", "TRACE"));
    expect(await everything(traced)).toMatch(/^HTTP\/1\.1 405 TRACE is not allowed: it would reveal the credential/);
    expect(requests).toHaveLength(1);
  });

  test("a path that looks like another host stays a path", async () => {
    const { proxy, port, requests } = await start();
    const socket = await open(proxy, port);
    socket.write(request("//evil.example/"));
    await everything(socket);
    expect(requests.map(({ url, headers }) => [url, headers.host])).toEqual([
      ["//evil.example/", `api.example:${port}`],
    ]);
  });

  test.each(["https://evil.example/", "http://api.example/", "evil"])(
    "a request in the connection cannot name another origin: %s",
    async (target) => {
      const { proxy, port, requests } = await start();
      const socket = await open(proxy, port);
      socket.write(request(target));
      const answer = await everything(socket);
      expect(answer).toMatch(/^HTTP\/1\.1 4(?:00|21) /);
      expect(requests).toEqual([]);
    },
  );

  test("the value is read again for each request, and may be a promise", async () => {
    let count = 0;
    const { proxy, port, requests } = await start({ value: () => Promise.resolve(`token ${(count += 1)}`) });
    for (const _ of [1, 2]) {
      const socket = await open(proxy, port);
      socket.write(request("/"));
      await everything(socket);
    }
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(["token 1", "token 2"]);
  });

  test.each([
    ["throws", () => Promise.reject(new Error(`broken ${secret}`))],
    ["is not a valid header", () => `${secret}\r\nX-More: 1`],
    // As a JavaScript caller may have it.
    ["is null", (): string => null as never],
    ["never resolves", () => new Promise<string>(() => {})],
  ])("a value that %s fails the request, and is not shown", async (_, value) => {
    const { proxy, port, requests } = await start({ value }, { connectTimeoutMs: 4000 });
    const socket = await open(proxy, port);
    socket.write(request("/"));
    const answer = await everything(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 502 the credential for api\.example could not be read\r\n/);
    expect(answer + JSON.stringify(proxy.decisions)).not.toContain("s3cr3t");
    expect(requests).toEqual([]);
  });

  test("a client that leaves during the TLS handshake with the host leaves no connection behind", async () => {
    const requests: IncomingMessage[] = [];
    const { port: hostPort, ca } = await playTlsHost("api.example", (incoming) => void requests.push(incoming));
    let upstream: Socket | undefined;
    const port = await playTcp((socket) => void (upstream = socket));
    const credentials = [{ host: `api.example:${port}`, header: "authorization", value: () => secret, ca }];
    const proxy = await startProxy({ allow: ["api.example", "127.0.0.1"], credentials });
    const client = await open(proxy, port);
    client.write(request("/"));
    const arrived = await vi.waitUntil(() => upstream, { timeout: 60_000 });
    client.destroy();
    await vi.waitUntil(() => proxy.proxy.connections === 0, { timeout: 60_000 });
    // The host answers only now, as a slow one would.
    const host = connect(hostPort, "127.0.0.1");
    onTestFinished(() => void host.destroy());
    const closed = once(arrived, "close");
    arrived.pipe(host).pipe(arrived);
    await closed;
    expect(requests).toEqual([]);
  });

  test("a host with an untrusted certificate gets no credential", async () => {
    const { ca: wrong } = await playTlsHost("api.example", () => {});
    const { proxy, port, requests } = await start({ ca: wrong });
    const socket = await open(proxy, port);
    socket.write(request("/"));
    expect(await everything(socket)).toMatch(/^HTTP\/1\.1 502 could not connect securely to api\.example: /);
    expect(requests).toEqual([]);
  });

  test("nor does it if the environment switches the check of certificates off", async () => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    onTestFinished(() => void vi.unstubAllEnvs());
    const { ca: wrong } = await playTlsHost("api.example", () => {});
    const { proxy, port, requests } = await start({ ca: wrong });
    const socket = await open(proxy, port);
    socket.write(request("/"));
    expect(await everything(socket)).toMatch(/^HTTP\/1\.1 502 could not connect securely to api\.example: /);
    expect(requests).toEqual([]);
  });

  test("an open connection gets none for a host that is no longer listed", async () => {
    let allow = ["api.example", "127.0.0.1"];
    const { proxy, port, requests } = await start({}, { allow: () => allow });
    const socket = await open(proxy, port);
    socket.write("GET /one HTTP/1.1\r\nHost: api.example\r\n\r\n");
    await once(socket, "data");
    allow = ["127.0.0.1"];
    socket.write(request("/two"));
    expect(await everything(socket)).toMatch(/HTTP\/1\.1 403 api\.example is not in this executor's network policy/);
    expect(requests.map(({ url }) => url)).toEqual(["/one"]);
    expect(proxy.decisions.map(({ allowed }) => allowed)).toEqual([true, false]);
  });

  test("the session's authority outlives any session, and certificates for hosts are renewed", async () => {
    const { proxy, port } = await start();
    const validTo = async (): Promise<number> => {
      const socket = await proxy.connect();
      socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nHost: api.example:${port}\r\n\r\n`);
      await once(socket, "data");
      // The test's clock is not that of the client.
      const secured = connectTls({ socket, servername: "api.example", rejectUnauthorized: false });
      onTestFinished(() => void secured.destroy());
      await once(secured, "secureConnect");
      return Date.parse(secured.getPeerCertificate().valid_to);
    };
    const first = await validTo();
    expect(await validTo()).toBe(first);
    const day = 24 * 3_600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 40 * day });
    onTestFinished(() => void vi.useRealTimers());
    expect(await validTo()).toBeGreaterThan(Date.now());
    const { validTo: end } = new X509Certificate((await proxy.proxy.certificate()) ?? "");
    expect(Date.parse(end)).toBeGreaterThan(Date.now() + 1000 * day);
  });

  test("plain HTTP gets no credential", async () => {
    let heard: IncomingMessage | undefined;
    const port = await playHost((incoming, response) => {
      heard = incoming;
      response.end("plain");
    });
    const credentials = [{ host: `api.example:${port}`, header: "authorization", value: () => secret }];
    const proxy = await startProxy({ allow: ["api.example", "127.0.0.1"], credentials });
    expect(await exchange(proxy, get(`http://api.example:${port}/`))).toContain("plain");
    expect(heard?.headers.authorization).toBeUndefined();
  });

  test("a credential does not exempt its host from the check of addresses", async () => {
    const { proxy, port, requests } = await start({}, { allow: ["api.example"] });
    const socket = await open(proxy, port);
    socket.write(request("/"));
    expect(await everything(socket)).toMatch(/^HTTP\/1\.1 403 api\.example is not in .*: it resolves to a loopback/);
    expect(requests).toEqual([]);
  });

  test("the TLS of other hosts is passed through unread", async () => {
    const { port, ca } = await playTlsHost("other.example", (_, response) => void response.end("untouched"));
    const proxy = await startProxy({ allow: ["other.example", "127.0.0.1"] });
    expect(await proxy.proxy.certificate()).toBeUndefined();
    const socket = await proxy.connect();
    socket.write(`CONNECT other.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await once(socket, "data");
    const secured = connectTls({ socket, servername: "other.example", ca });
    secured.write(get("/"));
    expect(await everything(secured)).toContain("untouched");
  });

  test.each([
    ["curl", "url"],
    ["curl", "socksUrl"],
    ["python3", "url"],
  ] as const)("%s trusts the authority from a file, over %s", async (program, way) => {
    const { proxy, port, requests } = await start();
    const directory = await mkdtemp(path.join(tmpdir(), "egress-ca-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const file = path.join(directory, "ca.pem");
    await writeFile(file, (await proxy.proxy.certificate()) ?? "");
    const url = `https://api.example:${port}/`;
    const code = `import urllib.request; print(urllib.request.urlopen("${url}").read().decode())`;
    const env = { SSL_CERT_FILE: file, https_proxy: proxy[way] };
    const args = program === "curl" ? ["-sS", "-m", "10", url] : ["-c", code];
    expect(await run(program, args, env)).toMatchObject({ code: 0, output: expect.stringContaining("answer") });
    expect(new Set(requests.map(({ headers }) => headers.authorization))).toEqual(new Set([secret]));
  });
});
