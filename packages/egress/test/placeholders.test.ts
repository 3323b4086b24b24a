import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { gzipSync } from "node:zlib";
import { InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { playHost, playTcp, playTlsHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, onTestFinished, test } from "vitest";
import { EgressProxy, type EgressProxyOptions, type PlaceholderCredential } from "../src/index.ts";
import { everything, exchange, get, startProxy, type TestProxy } from "./support/places.ts";

const placeholder = "env:STRIPE_KEY";
/** With characters that mean something in queries, forms and JSON. */
const secret = `s3cr3t-A+b/c=d&e "f\\g`;

interface Arrived {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

interface Played {
  readonly proxy: TestProxy;
  readonly port: number;
  readonly arrived: Arrived[];
}

type Answer = (request: Arrived, response: ServerResponse) => void;

/** A host that has a placeholder, a proxy to it, and what arrived there. */
async function start(
  credential: Partial<PlaceholderCredential> = {},
  answer: Answer = (_, response) => void response.end("answer"),
  options: (place: string, ca: string) => Partial<EgressProxyOptions> = () => ({}),
): Promise<Played> {
  const arrived: Arrived[] = [];
  const { port, ca } = await playTlsHost("api.example", (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const one = { url: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks) };
      arrived.push(one);
      answer(one, response);
    });
  });
  const place = `api.example:${port}`;
  const credentials = [{ host: place, placeholder, value: () => secret, ca, ...credential }];
  const proxy = await startProxy({ allow: ["api.example", "127.0.0.1"], credentials, ...options(place, ca) });
  return { proxy, port, arrived };
}

async function open({ proxy, port }: Pick<Played, "proxy" | "port">): Promise<TLSSocket> {
  const socket = await proxy.connect();
  socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nHost: api.example:${port}\r\n\r\n`);
  await once(socket, "data");
  const ca = (await proxy.proxy.certificate()) ?? "";
  const secured = connectTls({ socket, servername: "api.example", ca });
  onTestFinished(() => void secured.destroy());
  await once(secured, "secureConnect");
  return secured;
}

async function ask(played: Played, path: string, headers = "", body: string | Buffer = ""): Promise<string> {
  const socket = await open(played);
  const length = body.length > 0 ? `Content-Length: ${Buffer.byteLength(body)}\r\n` : "";
  const method = body.length > 0 ? "POST" : "GET";
  socket.write(`${method} ${path} HTTP/1.1\r\nHost: api.example\r\n${headers}${length}Connection: close\r\n\r\n`);
  socket.write(body);
  return everything(socket);
}

const json = "Content-Type: application/json\r\n";
const form = "Content-Type: application/x-www-form-urlencoded\r\n";

describe("placeholders", needs("openssl"), () => {
  test("are replaced in headers, also where Basic authorization hides them", async () => {
    const played = await start();
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
    await ask(played, "/", `Authorization: Bearer ${placeholder}\r\nX-Two: ${placeholder},${placeholder}\r\n`);
    await ask(played, "/", `Authorization: ${basic(`${placeholder}:`)}\r\n`);
    await ask(played, "/", `Authorization: ${basic("user:env:STRIPE_KE")}\r\nX-${placeholder.slice(4)}: mine\r\n`);
    const [first, second, third] = played.arrived.map(({ headers }) => headers);
    expect(first).toMatchObject({ authorization: `Bearer ${secret}`, "x-two": `${secret},${secret}` });
    expect(second).toMatchObject({ authorization: basic(`${secret}:`) });
    expect(third).toMatchObject({ authorization: basic("user:env:STRIPE_KE"), "x-stripe_key": "mine" });
  });

  test.each(["env:STRIPE_KEY", "env%3ASTRIPE_KEY", "env%3aSTRIPE%5FKEY"])(
    "are replaced in the query and not in the path: %s",
    async (spelling) => {
      const played = await start();
      await ask(played, `/${spelling}?key=${spelling}&b=${spelling}x&c=env%253ASTRIPE_KEY`);
      const [url = ""] = played.arrived.map(({ url: each }) => each);
      expect(url.split("?")[0]).toBe(`/${spelling}`);
      expect([...new URLSearchParams(url.split("?")[1])]).toEqual([
        ["key", secret],
        ["b", `${secret}x`],
        ["c", "env%3ASTRIPE_KEY"],
      ]);
    },
  );

  test("are replaced in bodies as their type demands, and the length is right", async () => {
    const played = await start();
    const bodies = [
      [form, `a=1&key=env%3ASTRIPE_KEY&other=${placeholder}`],
      [json, JSON.stringify({ key: placeholder, list: [`<${placeholder}>`] })],
      ["Content-Type: application/vnd.api+json; charset=utf-8\r\n", String.raw`{"key":"env\u003aSTRIPE_KEY"}`],
      ["Content-Type: text/plain\r\n", `${placeholder} and ${placeholder}`],
      ["", `ü ${placeholder}`],
    ] as const;
    for (const [headers, body] of bodies) await ask(played, "/", headers, body);
    const got = played.arrived.map(({ body }) => body.toString());
    expect(Object.fromEntries(new URLSearchParams(got[0]))).toEqual({ a: "1", key: secret, other: secret });
    expect(JSON.parse(got[1] ?? "")).toEqual({ key: secret, list: [`<${secret}>`] });
    expect(JSON.parse(got[2] ?? "")).toEqual({ key: secret });
    expect(got.slice(3)).toEqual([`${secret} and ${secret}`, `ü ${secret}`]);
    const lengths = played.arrived.map(({ headers }) => headers["content-length"]);
    expect(lengths).toEqual(played.arrived.map(({ body }) => String(body.length)));
  });

  test("are found in a body of any size, however it is cut, which is sent in chunks", async () => {
    const played = await start();
    const filler = "env:STRIPE_KE ".repeat(10_000);
    const socket = await open(played);
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    for (const part of [...placeholder.split(""), "-", "env:STR", "IPE_KEYenv:STRIPE_KEY", filler, "env:"]) {
      socket.write(`${part.length.toString(16)}\r\n${part}\r\n`);
      await new Promise(setImmediate);
    }
    socket.write("0\r\n\r\n");
    await everything(socket);
    await ask(played, "/", "", `${filler}${placeholder}`);
    expect(played.arrived.map(({ body }) => body.toString())).toEqual([
      `${secret}-${secret}${secret}${filler}env:`,
      `${filler}${secret}`,
    ]);
    expect(played.arrived.map(({ headers }) => headers["transfer-encoding"])).toEqual(["chunked", "chunked"]);
    expect(played.arrived.map(({ headers }) => headers["content-length"])).toEqual([undefined, undefined]);
  });

  test("only the possible beginning of one waits for what follows", async () => {
    const seen: string[] = [];
    const { port, ca } = await playTlsHost("api.example", (request, response) => {
      request.on("data", (chunk: Buffer) => seen.push(chunk.toString()));
      request.on("end", () => response.end("ok"));
    });
    const credentials = [{ host: `api.example:${port}`, placeholder, value: () => secret, ca }];
    const proxy = await startProxy({ allow: ["api.example", "127.0.0.1"], credentials });
    const socket = await open({ proxy, port });
    socket.write(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n8\r\nquestion\r\n",
    );
    await expect.poll(() => seen.join("")).toBe("question");
    socket.write("5\r\n? env\r\n");
    await expect.poll(() => seen.join("")).toBe("question? ");
    socket.write("5\r\nious!\r\n0\r\n\r\n");
    await everything(socket);
    expect(seen.join("")).toBe("question? envious!");
  });

  test("stay in bodies that are compressed or not text", async () => {
    const played = await start();
    const packed = gzipSync(placeholder);
    await ask(played, "/", "Content-Encoding: gzip\r\nContent-Type: text/plain\r\n", packed);
    await ask(played, "/", "Content-Type: application/octet-stream\r\n", placeholder);
    expect(played.arrived.map(({ body }) => body)).toEqual([packed, Buffer.from(placeholder)]);
  });

  test("are replaced only in the parts that `in` names", async () => {
    const played = await start({ in: ["header"] });
    await ask(played, `/?k=${placeholder}`, `X-Key: ${placeholder}\r\n`, placeholder);
    expect(played.arrived.map(({ url, headers, body }) => [url, headers["x-key"], String(body)])).toEqual([
      [`/?k=${placeholder}`, secret, placeholder],
    ]);
  });

  test("several have a value each, next to a header that is added and a rule", async () => {
    const played = await start({}, undefined, (host, ca) => ({
      allow: [{ host, methods: ["GET"], paths: ["/v1/**"], ca }, "127.0.0.1"],
      credentials: [
        { host, placeholder, value: () => "first-value", ca },
        { host, placeholder: "env:STRIPE_ID", value: () => Promise.resolve("second-value") },
        { host, header: "x-added", value: () => `added ${placeholder}` },
        { host: "127.0.0.1", placeholder, value: () => "of another host" },
      ],
    }));
    const headers = `X-Both: ${placeholder} env:STRIPE_ID\r\nX-Added: ${placeholder}\r\n`;
    await ask(played, `/v1/x?a=${placeholder}`, headers);
    expect(await ask(played, `/other?a=${placeholder}`)).toMatch(/^HTTP\/1\.1 403 GET \/other of api\.example is not/);
    expect(played.arrived).toHaveLength(1);
    expect(played.arrived[0]).toMatchObject({
      url: "/v1/x?a=first-value",
      headers: { "x-both": "first-value second-value", "x-added": `added ${placeholder}` },
    });
    expect(JSON.stringify(played.proxy.decisions)).not.toContain("first-value");
  });

  test("plain HTTP, other hosts and hosts with another certificate get no value", async () => {
    const heard: string[] = [];
    const plain = await playHost((request, response) => {
      heard.push(`${request.url} ${String(request.headers["x-key"])}`);
      response.end("ok");
    });
    const played = await start();
    const { ca: wrong } = await playTlsHost("api.example", () => {});
    const proxy = await startProxy({
      allow: ["api.example", "127.0.0.1"],
      credentials: [
        { host: `api.example:${plain}`, placeholder, value: () => secret },
        { host: `api.example:${played.port}`, placeholder, value: () => secret, ca: wrong },
      ],
    });
    await exchange(proxy, get(`http://api.example:${plain}/?${placeholder}`, `X-Key: ${placeholder}\r\n`));
    expect(heard).toEqual([`/?${placeholder} ${placeholder}`]);
    expect(await ask({ ...played, proxy }, `/?${placeholder}`)).toMatch(/^HTTP\/1\.1 502 could not connect securely/);
    expect(played.arrived).toEqual([]);
  });

  test("what the host repeats is replaced by what the program sent, also in headers and on error pages", async () => {
    const repeated = (text: string): string => {
      const encoded = encodeURIComponent(text);
      return [text, JSON.stringify(text), encoded, encoded.replaceAll(/%../g, (hex) => hex.toLowerCase())].join("\n");
    };
    const played = await start({}, ({ headers }, response) => {
      response.writeHead(500, `Bad ${secret}`, {
        location: `https://other.example/?key=${encodeURIComponent(secret)}`,
        "x-echo": headers.authorization,
        "content-type": "text/html",
        "content-length": Buffer.byteLength(repeated(secret)),
      });
      const [start_, end] = [repeated(secret).slice(0, 10), repeated(secret).slice(10)];
      response.write(start_);
      setImmediate(() => response.end(end));
    });
    const basic = `Basic ${Buffer.from(`u:${placeholder}`).toString("base64")}`;
    const answer = await ask(played, "/", `Authorization: ${basic}\r\nAccept-Encoding: gzip, br\r\n`);
    expect(played.arrived[0]?.headers["accept-encoding"]).toBe("identity");
    expect(answer).not.toContain("s3cr3t");
    expect(answer).not.toContain(Buffer.from("s3cr3t").toString("base64").slice(0, 6));
    expect(answer).toMatch(/^HTTP\/1\.1 500 Bad env:STRIPE_KEY\r\n/);
    expect(answer).toContain(`location: https://other.example/?key=${placeholder}\r\n`);
    expect(answer).toContain(`x-echo: ${basic}\r\n`);
    expect(answer.split(placeholder)).toHaveLength(7);
  });

  test.each([
    ["JSON of PHP", String.raw`s3cr3t-A+b\/c=d&e \"f\\g`],
    ["JSON of .NET", String.raw`s3cr3t-A\u002Bb/c=d\u0026e \u0022f\\g`],
    ["JSON of Go", String.raw`s3cr3t-A+b/c=d\u0026e \"f\\g`],
    ["HTML of Python", String.raw`s3cr3t-A+b/c=d&amp;e &quot;f\g`],
    ["HTML of .NET", String.raw`s3cr3t-A&#x2B;b/c=d&amp;e &quot;f\g`],
    ["HTML of Handlebars", String.raw`s3cr3t-A+b/c&#x3D;d&amp;e &#34;f\g`],
    ["a form that encodes everything", Array.from(secret, (each) => `%${Buffer.from(each).toString("hex")}`).join("")],
    ["a URL that keeps what it may", "s3cr3t-A+b/c=d&e%20%22f%5Cg"],
  ])("what the host repeats is found as it is escaped by %s", async (_, escaped) => {
    const played = await start({}, (_request, response) => {
      response.writeHead(401, { "content-type": "text/html", "x-reason": escaped });
      response.end(`<p>${escaped}</p>`);
    });
    const answer = await ask(played, "/", `X-Key: ${placeholder}\r\n`);
    expect(answer).toContain(`x-reason: ${placeholder}\r\n`);
    // Each piece of the body may be a chunk.
    expect(answer.split(placeholder)).toHaveLength(3);
    expect(answer).not.toContain(escaped);
  });

  test("answers that are not text, have no body, or contain only short values are passed on unchanged", async () => {
    const bytes = Buffer.from("answer with short in it");
    const played = await start({ value: () => "short" }, ({ url }, response) => {
      const type = url === "/binary" ? "application/octet-stream" : "text/plain";
      response.writeHead(200, { "content-type": type, "content-length": bytes.length }).end(bytes);
    });
    expect(await ask(played, "/binary")).toContain(`content-length: ${bytes.length}\r\n`);
    expect(await ask(played, "/")).toContain("answer with short in it");
    const socket = await open(played);
    socket.write("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(await everything(socket)).toContain(`content-length: ${bytes.length}\r\n`);
  });

  test("an answer is passed on as it comes", async () => {
    let finish = (): void => {};
    const played = await start({}, (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: one\n\n");
      finish = () => void response.end("data: two\n\n");
    });
    const socket = await open(played);
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let heard = "";
    socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
    await expect.poll(() => heard).toContain("data: one\n\n");
    finish();
    await once(socket, "end");
    expect(heard).toContain("data: two\n\n");
  });

  test.each([
    [
      "throws",
      () => Promise.reject(new Error(`broken ${secret}`)),
      /502 the credential for api\.example could not be read/,
    ],
    ["has a line break", () => `${secret}\r\nX-More: 1`, /502 the value of env:STRIPE_KEY is not 1 to 8192 printable/],
    ["ends in a line feed", () => `${secret}\n`, /502 the value of env:STRIPE_KEY is not/],
    ["is empty", () => "", /502 the value of env:STRIPE_KEY is not/],
    ["is too long", () => "s3cr3t".repeat(2000), /502 the value of env:STRIPE_KEY is not/],
    // As a JavaScript caller may have it.
    ["is null", (): string => null as never, /502 the value of env:STRIPE_KEY is not/],
  ])("a value that %s fails the request, and is not shown", async (_, value, reason) => {
    const played = await start({ value });
    const answer = await ask(played, `/?k=${placeholder}`, form, `k=${placeholder}`);
    expect(answer).toMatch(reason);
    expect(answer + JSON.stringify(played.proxy.decisions)).not.toContain("s3cr3t");
    expect(played.arrived).toEqual([]);
  });

  test("a header that values make too long is refused, and a body grows without being held", async () => {
    const value = "v".repeat(8192);
    const played = await start({ value: () => value });
    const answer = await ask(played, "/", `X-Many: ${`${placeholder} `.repeat(9)}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 the request's header is longer than 65536 bytes with its credentials/);
    const times = 4000;
    await ask(played, "/", "", placeholder.repeat(times));
    expect(played.arrived.map(({ body }) => body.length)).toEqual([times * value.length]);
  });

  test("a client that does not finish a short body is disconnected, and the host is not asked", async () => {
    let reached = 0;
    const port = await playTcp(() => void (reached += 1));
    const proxy = await startProxy({
      allow: ["api.example", "127.0.0.1"],
      credentials: [{ host: `api.example:${port}`, placeholder, value: () => secret }],
      idleTimeoutMs: 3000,
    });
    const socket = await open({ proxy, port });
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    await everything(socket);
    await expect.poll(() => proxy.proxy.connections).toBe(0);
    expect(reached).toBe(0);
  });
});

const [host, value] = ["api.example", (): string => secret];

test.each([
  ["both", [{ host, header: "x-key", placeholder, value }], /either a `header` to add or a `placeholder` to replace/],
  ["neither", [{ host, value }], /either a `header` to add or a `placeholder` to replace/],
  ["a short one", [{ host, placeholder: "KEY", value }], /"credentials\[0\]\.placeholder".*8 to 128 letters, digits/],
  ["one that JSON escapes", [{ host, placeholder: 'a"longer"one', value }], /8 to 128 letters, digits/],
  ["an encoded one", [{ host, placeholder: "env%3ASTRIPE", value }], /8 to 128 letters, digits/],
  ["an unknown part", [{ host, placeholder, value, in: ["path"] }], /"credentials\[0\]\.in\[0\]"/],
  ["no part", [{ host, placeholder, value, in: [] }], /must name a part of a request/],
  [
    "parts of a header",
    [{ host, header: "x-key", value, in: ["query"] }],
    /"credentials\[0\]\.in".*for a `placeholder`/,
  ],
  [
    "one in another",
    [
      { host, placeholder: "env:STRIPE", value },
      { host: "API.example:443", placeholder, value },
    ],
    /"credentials\[1\]\.placeholder".*must not be or contain another placeholder of the same host/,
  ],
  [
    "the same twice",
    [
      { host, placeholder, value },
      { host, placeholder, value },
    ],
    /must not be or contain another/,
  ],
  ["another host", [{ host: "b.example", placeholder, value }], /must be covered by `allow`/],
])("a policy with %s is refused, and the error does not contain the value", (_, credentials, message) => {
  const make = (): unknown => Reflect.construct(EgressProxy, [{ allow: [host], credentials }]);
  expect(make).toThrow(InvalidInputError);
  expect(make).toThrow(message);
  expect(make).not.toThrow(/s3cr3t/);
});

test("the same placeholder may have a value for each host", () => {
  const credentials = ["a.example", "b.example"].map((each) => ({ host: each, placeholder, value }));
  expect(() => new EgressProxy({ allow: ["*.example"], credentials })).not.toThrow();
});
