import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { playConnectProxy } from "@fenced/test-support/connect-proxy";
import { newIdentity, playHost, playTcp, playTlsHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, onTestFinished, test } from "vitest";
import { EgressProxy, type UpstreamProxy } from "../src/index.ts";
import { everything, exchange, get, startProxy, type TestProxy } from "./support/places.ts";

const password = "s3cr3t-pass:word";
const account = { username: "builder", password: () => Promise.resolve(password) };
const inner = "GET / HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\r\n";

function inside(proxy: TestProxy, target: string): Promise<string> {
  return exchange(proxy, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n${inner}`);
}

async function overSocks(proxy: TestProxy, host: string, port: number): Promise<string> {
  const to = Buffer.from([0, 0]);
  to.writeUInt16BE(port);
  const hello = Buffer.from([5, 1, 0, 5, 1, 0, 3, host.length]);
  return exchange(proxy, Buffer.concat([hello, Buffer.from(host), to, Buffer.from(inner)]));
}

test("all connections to listed names go through the proxy, which looks the names up", async () => {
  const port = await playHost();
  const upstream = await playConnectProxy();
  const proxy = await startProxy({
    allow: ["a.example", "*.b.example"],
    upstreamProxy: { url: `http://127.0.0.1:${upstream.port}`, ...account },
  });
  expect(await exchange(proxy, get(`http://a.example:${port}/x`))).toContain(`host of a.example:${port}: GET /x`);
  expect(await inside(proxy, `c.b.example:${port}`)).toContain("host of inner");
  expect(await overSocks(proxy, "a.example", port)).toContain("host of inner");
  const credentials = `builder:${password}`;
  expect(upstream.connected).toEqual(
    ["a.example", "c.b.example", "a.example"].map((host) => ({ target: `${host}:${port}`, credentials })),
  );
  expect(proxy.lookups).toEqual([]);
  expect(proxy.decisions.map(({ allowed, host, address }) => [allowed, host, address])).toEqual([
    [true, "a.example", undefined],
    [true, "c.b.example", undefined],
    [true, "a.example", undefined],
  ]);
  expect(await inside(proxy, `other.example:${port}`)).toMatch(/^HTTP\/1\.1 403 other\.example is not in/);
  expect(upstream.connected).toHaveLength(3);
});

test("names that code chooses are looked up here, and the proxy gets the address that was checked", async () => {
  const port = await playHost();
  const upstream = await playConnectProxy();
  const addresses = new Map([
    ["new.example", ["93.184.216.34"]],
    ["newer.example", ["2606:2800:220:1::1"]],
    ["inner.example", ["169.254.169.254"]],
  ]);
  const options = {
    upstreamProxy: { url: `http://127.0.0.1:${upstream.port}` },
    resolve: (host: string) => Promise.resolve(addresses.get(host) ?? ["127.0.0.1"]),
  };
  const any = await startProxy({ allow: ["*"], ...options });
  const asking = await startProxy({ allow: [], onUnknownHost: () => true, ...options });
  for (const proxy of [any, asking]) {
    for (const host of ["new.example", "newer.example"]) {
      expect(await inside(proxy, `${host}:${port}`)).toContain("host of inner");
    }
    expect(await inside(proxy, `inner.example:${port}`)).toContain("it resolves to a cloud metadata address");
    expect(await inside(proxy, `a.localhost:${port}`)).toContain("it resolves to a loopback address");
  }
  expect(await inside(any, `10.0.0.1:${port}`)).toContain("it is a private address");
  const listed = await startProxy({ allow: ["localhost"], ...options });
  expect(await inside(listed, `localhost:${port}`)).toContain("it resolves to a loopback address");
  const targets = ["93.184.216.34", "[2606:2800:220:1::1]"].map((host) => `${host}:${port}`);
  expect(upstream.connected.map(({ target }) => target)).toEqual([...targets, ...targets]);
});

test("a listed name is looked up here if some of its addresses are denied", async () => {
  const port = await playHost();
  const upstream = await playConnectProxy();
  const proxy = await startProxy({
    allow: ["a.example", "b.example"],
    deny: [{ addresses: ["93.184.216.0/24"], except: ["b.example"] }],
    upstreamProxy: { url: `http://127.0.0.1:${upstream.port}` },
    resolve: () => Promise.resolve(["93.184.216.34", "198.41.0.4"]),
  });
  expect(await inside(proxy, `a.example:${port}`)).toContain("host of inner");
  expect(await inside(proxy, `b.example:${port}`)).toContain("host of inner");
  expect(upstream.connected.map(({ target }) => target)).toEqual([`198.41.0.4:${port}`, `b.example:${port}`]);
  expect(proxy.lookups).toEqual(["a.example"]);
});

test("so are names below a top-level domain in which code could register one", async () => {
  const port = await playHost();
  const upstream = await playConnectProxy();
  const proxy = await startProxy({
    allow: ["*.com", "*.corp"],
    resolve: () => Promise.resolve(["169.254.169.254"]),
    upstreamProxy: { url: `http://127.0.0.1:${upstream.port}` },
  });
  expect(await inside(proxy, `metadata.evil.com:${port}`)).toContain("it resolves to a cloud metadata address");
  expect(await inside(proxy, `a.corp:${port}`)).toContain("host of inner");
  expect(upstream.connected.map(({ target }) => target)).toEqual([`a.corp:${port}`]);
});

test("hosts of `noProxy`, and listed addresses of this machine, are reached directly", async () => {
  const port = await playHost();
  const upstream = await playConnectProxy();
  const proxy = await startProxy({
    allow: ["intranet.example", "x.corp.example", "127.0.0.1"],
    upstreamProxy: {
      url: `http://127.0.0.1:${upstream.port}`,
      noProxy: [`Intranet.example:${port}`, "*.corp.example"],
    },
  });
  for (const host of ["intranet.example", "x.corp.example", "127.0.0.1"]) {
    expect(await exchange(proxy, get(`http://${host}:${port}/`))).toContain(`host of ${host}:${port}`);
  }
  expect(upstream.connected).toEqual([]);
});

/** Whatever a client sends first is answered by this. */
async function playDownload(content: Buffer): Promise<number> {
  return playTcp((socket: Socket) => void socket.once("data", () => void socket.end(content)));
}

async function fetched(proxy: TestProxy, port: number): Promise<string> {
  const socket = await proxy.connect();
  socket.write(`CONNECT a.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const hash = createHash("sha256");
  let begun = false;
  socket.on("data", (chunk: Buffer) => {
    if (begun) {
      hash.update(chunk);
      return;
    }
    expect(chunk.toString("latin1")).toBe("HTTP/1.1 200 Connection established\r\n\r\n");
    begun = true;
    socket.end("question");
  });
  await once(socket, "end");
  return hash.digest("hex");
}

test("a large download arrives whole", async () => {
  const content = randomBytes(9_000_001);
  const upstream = await playConnectProxy();
  const url = `http://127.0.0.1:${upstream.port}`;
  const proxy = await startProxy({ allow: ["a.example"], upstreamProxy: { url } });
  const expected = createHash("sha256").update(content).digest("hex");
  expect(await fetched(proxy, await playDownload(content))).toBe(expected);
});

test("what a host says at once is not lost, and an answer may come in pieces", async () => {
  const upstream = await playConnectProxy({
    answer: (_, stream) => {
      stream.write("HTTP/1.0 2");
      setImmediate(() => stream.end("00 OK\r\nContent-Length: 7\r\n\r\nSSH-2.0 hello"));
    },
  });
  const proxy = await startProxy({
    allow: ["a.example"],
    upstreamProxy: { url: `http://127.0.0.1:${upstream.port}` },
  });
  expect(await inside(proxy, "a.example:22")).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\nSSH-2\.0 hello$/);
});

describe("with TLS", needs("openssl"), () => {
  test("a proxy is verified, and gets no credentials otherwise", async () => {
    const identity = await newIdentity(["proxy.example"]);
    const content = randomBytes(3_000_001);
    const port = await playDownload(content);
    const upstream = await playConnectProxy({ server: createTlsServer({ ...identity, allowHalfOpen: true }) });
    const url = `https://proxy.example:${upstream.port}`;
    const start = (ca: string): Promise<TestProxy> =>
      startProxy({ allow: ["a.example"], upstreamProxy: { url, ca, ...account } });
    const proxy = await start(identity.cert);
    expect(await fetched(proxy, port)).toBe(createHash("sha256").update(content).digest("hex"));
    expect(proxy.lookups).toEqual(["proxy.example"]);
    const plain = await playHost();
    expect(await exchange(proxy, get(`http://a.example:${plain}/`))).toContain("host of a.example");
    const { cert: other } = await newIdentity(["proxy.example"]);
    expect(await inside(await start(other), `a.example:${port}`)).toMatch(
      /^HTTP\/1\.1 502 could not connect securely to the upstream proxy: /,
    );
    expect(upstream.connected).toHaveLength(2);
  });

  test.each([false, true])("hosts with placeholders are reached through it (https: %s)", async (secure) => {
    const arrived: string[] = [];
    const { port, ca } = await playTlsHost("api.example", (request, response) => {
      arrived.push(String(request.headers["x-key"]), String(request.headers["proxy-authorization"]));
      response.end("answer");
    });
    const identity = await newIdentity(["proxy.example"]);
    const upstream = await playConnectProxy(
      secure ? { server: createTlsServer({ ...identity, allowHalfOpen: true }) } : {},
    );
    const proxy = await startProxy({
      allow: ["api.example"],
      credentials: [{ host: `api.example:${port}`, placeholder: "env:API_KEY", value: () => "the-value", ca }],
      upstreamProxy: {
        url: `${secure ? "https" : "http"}://proxy.example:${upstream.port}`,
        ...(secure ? { ca: identity.cert } : {}),
        ...account,
      },
    });
    const socket = await proxy.connect();
    socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await once(socket, "data");
    const trusted = (await proxy.proxy.certificate()) ?? "";
    const secured = connectTls({ socket, servername: "api.example", ca: trusted });
    onTestFinished(() => void secured.destroy());
    await once(secured, "secureConnect");
    secured.write("GET / HTTP/1.1\r\nHost: x\r\nX-Key: env:API_KEY\r\nConnection: close\r\n\r\n");
    expect(await everything(secured)).toContain("answer");
    expect(arrived).toEqual(["the-value", "undefined"]);
    expect(upstream.connected.map(({ target }) => target)).toEqual([`api.example:${port}`]);
  });
});

const endless = (stream: Duplex): void => {
  const more = (): void =>
    void (stream.destroyed || stream.write(`X: ${"y".repeat(4000)}\r\n`, () => setImmediate(more)));
  stream.write("HTTP/1.1 200 OK\r\n");
  more();
};

const refusals: [string, (stream: Duplex) => unknown, Partial<UpstreamProxy>, RegExp][] = [
  [
    "asks for credentials",
    (stream) => stream.end("HTTP/1.1 407 No\r\n\r\n"),
    {},
    /^HTTP\/1\.1 502 the upstream proxy asks for credentials: set `username` and `password` of `upstreamProxy`/,
  ],
  [
    "rejects the credentials",
    (stream) => stream.write(`HTTP/1.1 407 No\r\nX: ${password}\r\n\r\n${password}`),
    account,
    /^HTTP\/1\.1 502 the upstream proxy rejected its credentials: check `username`/,
  ],
  [
    "forbids the host",
    (stream) => stream.end(`HTTP/1.1 403 ${password}\r\n\r\n`),
    account,
    /^HTTP\/1\.1 502 the upstream proxy did not connect to a\.example:443: it answered with status 403; allow CONNECT/,
  ],
  ["cannot reach it", (stream) => stream.end("HTTP/1.1 503 No\r\n\r\n"), {}, /status 503; it may not reach the host/],
  [
    "speaks another protocol",
    (stream) => stream.write("SSH-2.0 x\r\n"),
    {},
    /502 the upstream proxy did not answer as/,
  ],
  ["answers garbage", (stream) => stream.write("HTTP/1.1 yes\r\n\r\n"), {}, /502 the upstream proxy did not answer as/],
  [
    "hides a status",
    (stream) => stream.write("HTTP/1.1 x\nHTTP/1.1 200 OK\r\n\r\n"),
    {},
    /502 the upstream proxy did not answer as/,
  ],
  ["answers endlessly", endless, {}, /502 the upstream proxy did not answer as/],
  ["closes", (stream) => stream.destroy(), {}, /502 the upstream proxy did not answer as/],
  ["ends its side", (stream) => stream.end("HTTP/1.1 200"), {}, /502 the upstream proxy did not answer as/],
  ["hangs", () => {}, {}, /^HTTP\/1\.1 504 the upstream proxy did not answer in time/],
  [
    "has a password that cannot be read",
    () => {},
    { username: "x", password: () => Promise.reject(new Error(password)) },
    /^HTTP\/1\.1 502 the password of the upstream proxy could not be read/,
  ],
];

test.each(refusals)("a proxy that %s is a refusal that says what to do", async (name, answer, credentials, reason) => {
  const upstream = await playConnectProxy({ answer: (_, stream) => void answer(stream) });
  const proxy = await startProxy({
    allow: ["a.example"],
    upstreamProxy: { url: `http://127.0.0.1:${upstream.port}`, ...credentials },
    ...(name === "hangs" ? { connectTimeoutMs: 3000 } : {}),
  });
  const answers = await Promise.all([inside(proxy, "a.example:443"), exchange(proxy, get("http://a.example:443/"))]);
  for (const text of answers) expect(text).toMatch(reason);
  const told = answers.join("") + JSON.stringify(proxy.decisions);
  expect(told).not.toContain("s3cr3t");
  expect(told).not.toContain(String(upstream.port));
  await expect.poll(() => proxy.proxy.connections).toBe(0);
});

test("a proxy that cannot be reached or resolved is a refusal", async () => {
  const start = (url: string): Promise<TestProxy> =>
    startProxy({
      allow: ["a.example"],
      upstreamProxy: { url },
      resolve: () => Promise.reject(new Error(`nothing knows ${password}`)),
    });
  expect(await inside(await start("http://127.0.0.1:1"), "a.example:443")).toMatch(
    /^HTTP\/1\.1 502 the upstream proxy could not be reached: ECONNREFUSED/,
  );
  expect(await inside(await start("http://proxy.example:1"), "a.example:443")).toMatch(
    /^HTTP\/1\.1 502 the upstream proxy could not be resolved: check the `url` of `upstreamProxy`/,
  );
});

const url = "http://proxy.example:3128";
test.each([
  [
    "of another protocol",
    { url: "socks5://proxy.example" },
    /"upstreamProxy\.url".*must be the address of an HTTP proxy/,
  ],
  ["with credentials", { url: `http://builder:${password}@proxy.example` }, /use `username` and `password`/],
  ["with a path", { url: `${url}/${password}` }, /must have no path/],
  ["without a password", { url, username: "x" }, /"upstreamProxy\.password".*must be given with `username`/],
  ["without a user name", { url, password: (): string => password }, /"upstreamProxy\.username".*must be given/],
  ["with a text as password", { url, username: "x", password }, /"upstreamProxy\.password".*must be a function/],
  ["with a colon in its user name", { url, username: "a:b", password: (): string => password }, /without `:`/],
  ["with an unused certificate", { url, ca: "-----BEGIN CERTIFICATE-----" }, /is for an `https:\/\/` proxy/],
  ["with a wrong host", { url, noProxy: ["https://x.example"] }, /"upstreamProxy\.noProxy\[0\]"/],
  ["with an unknown option", { url, user: "x" }, /"upstreamProxy\.user"/],
])("a proxy %s is a wrong option, and the error does not contain the password", (_, upstreamProxy, message) => {
  const make = (): unknown => Reflect.construct(EgressProxy, [{ allow: ["a.example"], upstreamProxy }]);
  expect(make).toThrow(InvalidInputError);
  expect(make).toThrow(message);
  expect(make).not.toThrow(/s3cr3t/);
});
