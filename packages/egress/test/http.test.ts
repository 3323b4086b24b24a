import { once } from "node:events";
import { type IncomingMessage, request as startRequest } from "node:http";
import { playHost, playTcp } from "@fenced/test-support/loopback-hosts";
import { expect, test } from "vitest";
import { everything, exchange, get, startProxy } from "./support/places.ts";

/** A host that records the raw bytes it receives, and answers each connection once. */
async function playRecorder(): Promise<{ port: number; received: string[] }> {
  const received: string[] = [];
  const port = await playTcp((socket) => {
    const index = received.push("") - 1;
    socket.on("data", (chunk: Buffer) => {
      const heard = `${received[index] ?? ""}${chunk.toString("latin1")}`;
      received[index] = heard;
      if (heard.includes("\r\n\r\n")) {
        socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
    });
  });
  return { port, received };
}

test("the Host header is replaced by the host that was checked", async () => {
  const { port, received } = await playRecorder();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const answer = await exchange(
    proxy,
    `GET http://good.example:${port}/x?y=1 HTTP/1.1\r\nHost: evil.example\r\nX-Kept: yes\r\nConnection: close\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(received).toEqual([
    `GET /x?y=1 HTTP/1.1\r\nHost: good.example:${port}\r\nX-Kept: yes\r\nConnection: close\r\n\r\n`,
  ]);
});

test("a client that ends its side after its requests gets their answers", async () => {
  const { port, received } = await playRecorder();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const request = (method: string, path: string, rest: string): string =>
    `${method} http://good.example:${port}${path} HTTP/1.1\r\nHost: any\r\n${rest}`;
  const both = request("GET", "/one", "\r\n") + request("POST", "/two", "Content-Length: 4\r\n\r\nbody");
  const answer = await exchange(proxy, both, { half: true });
  expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
  expect(received.map((each) => each.split(" HTTP")[0])).toEqual(["GET /one", "POST /two"]);
  const cut = request("POST", "/cut", "Content-Length: 4\r\n\r\nbo");
  expect(await exchange(proxy, cut, { half: true })).toMatch(/^(?:HTTP\/1\.1 4|$)/);
  await expect.poll(() => proxy.proxy.connections).toBe(0);
});

test("hop-by-hop headers, and those that Connection names, are not forwarded", async () => {
  const { port, received } = await playRecorder();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  await exchange(
    proxy,
    `GET http://good.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 3\r\n` +
      "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: close\r\nTE: trailers\r\nUpgrade: h2c\r\n\r\n",
  );
  expect(received).toEqual([`GET / HTTP/1.1\r\nHost: good.example:${port}\r\nConnection: close\r\n\r\n`]);
});

const tail = "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n";

test.each([
  ["both lengths", `Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${tail}`],
  ["two lengths", `Content-Length: 0\r\nContent-Length: ${tail.length}\r\n\r\n${tail}`],
  ["a list of lengths", `Content-Length: 0, ${tail.length}\r\n\r\n${tail}`],
  ["a signed length", `Content-Length: +5\r\n\r\nhello${tail}`],
  ["an encoding in disguise", `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${tail}`],
  ["a combined encoding", `Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${tail}`],
  ["two encodings", `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${tail}`],
  ["a space before the colon", `Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n${tail}`],
  ["a folded header", `X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n`],
  ["a bare line feed", `X-A: b\nX-B: c\r\nContent-Length: 0\r\n\r\n`],
  ["a bare carriage return", `X-A: b\rX-B: c\r\nContent-Length: 0\r\n\r\n`],
  ["a chunk size that overflows", `Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n${tail}`],
  ["a NUL in a header", `X-A: b\0c\r\nContent-Length: 0\r\n\r\n`],
])("no second request is smuggled past with %s", async (_, rest) => {
  const { port, received } = await playRecorder();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const answer = await exchange(
    proxy,
    `POST http://good.example:${port}/ HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n${rest}`,
  );
  // Refused, or forwarded as one request that nobody can read as two.
  expect(answer).toMatch(/^HTTP\/1\.1 (?:400|200|50[24]) /);
  const heard = received.join("");
  expect(heard).not.toContain("evil.example");
  expect(heard.match(/HTTP\/1\.1/g)?.length ?? 0).toBeLessThan(2);
  expect(heard).not.toMatch(/\r\n[ \t]/);
});

test("a chunked body arrives whole, without its trailers", async () => {
  const bodies: string[] = [];
  const port = await playHost((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      bodies.push(`${body} ${JSON.stringify(request.trailers)}`);
      response.end("ok");
    });
  });
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  await exchange(
    proxy,
    `POST http://good.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n` +
      "5\r\nhello\r\n6\r\n world\r\n0\r\nX-T: 1\r\n\r\n",
  );
  expect(bodies).toEqual(["hello world {}"]);
});

test("requests on one connection are decided one by one, in order", async () => {
  const port = await playHost();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const one = (host: string, path: string, last = ""): string =>
    `GET http://${host}:${port}${path} HTTP/1.1\r\nHost: a\r\n${last}\r\n`;
  const answer = await exchange(
    proxy,
    one("good.example", "/1") + one("evil.example", "/2") + one("good.example", "/3", "Connection: close\r\n"),
  );
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 403", "HTTP/1.1 200"]);
  expect(answer.match(/host of \S+ GET \/\d/g)).toEqual([
    `host of good.example:${port}: GET /1`,
    `host of good.example:${port}: GET /3`,
  ]);
});

test("a thousand requests at once from a client reach the host one at a time", async () => {
  let open = 0;
  let most = 0;
  const port = await playHost((_, response) => {
    open += 1;
    most = Math.max(most, open);
    setTimeout(() => {
      open -= 1;
      response.end("ok");
    }, 5);
  });
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  await exchange(proxy, `GET http://good.example:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(1000));
  expect(most).toBeLessThan(2);
});

test.each([
  ["a page of the proxy itself", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["https without CONNECT", get("https://good.example/"), 400],
  ["another scheme", get("ftp://good.example/"), 400],
  ["CONNECT without a port", "CONNECT good.example HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["CONNECT with port 0", "CONNECT good.example:0 HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["CONNECT with port 65536", "CONNECT good.example:65536 HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["CONNECT with a user", "CONNECT u@good.example:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  ["garbage", "\x16\x03\x01 hello\r\n\r\n", 400],
])("%s is answered with an error", async (_, request, status) => {
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  expect(await exchange(proxy, request)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(proxy.decisions.filter(({ allowed }) => allowed)).toEqual([]);
});

test("a header that is too long is refused", async () => {
  const proxy = await startProxy({ allow: ["good.example"] });
  const answer = await exchange(proxy, `GET http://good.example/ HTTP/1.1\r\nX: ${"a".repeat(100_000)}`);
  expect(answer).toMatch(/^HTTP\/1\.1 431 the request's header is longer than 16384 bytes\r\n/);
  const socket = await proxy.connect();
  socket.write(`CONNECT ${"a".repeat(1_000_000)}`);
  expect(await everything(socket)).toMatch(/^HTTP\/1\.1 431 |^$/);
});

test("an answer with an endless header is cut off", async () => {
  const port = await playTcp((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    const line = `X: ${"a".repeat(8000)}\r\n`;
    const more = (): void => {
      while (!socket.destroyed && socket.write(line));
    };
    socket.on("drain", more);
    more();
  });
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const answer = await exchange(proxy, get(`http://good.example:${port}/`));
  expect(answer).toMatch(/^HTTP\/1\.1 502 good\.example:\d+ closed the connection: HPE_HEADER_OVERFLOW\r\n/);
});

test.each(["G", "GET http://good.example/ HTTP/1.1\r\nHost: a\r\nX-Slow: ", "\x05", "\x05\x01\x00\x05\x01"])(
  "a client that does not finish its request is disconnected: %j",
  async (start) => {
    const proxy = await startProxy({ allow: ["good.example"], headTimeoutMs: 300 });
    const socket = await proxy.connect();
    socket.write(start);
    // Sending one byte at a time does not extend the limit.
    const drip = setInterval(() => void (socket.writable && start.endsWith(" ") && socket.write("a")), 50);
    await everything(socket);
    clearInterval(drip);
    await expect.poll(() => proxy.proxy.connections).toBe(0);
  },
);

test("an idle connection is closed, before and after a request", async () => {
  const port = await playHost();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"], headTimeoutMs: 3000 });
  expect(await everything(await proxy.connect())).toBe("");
  const answer = await exchange(proxy, `GET http://good.example:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  expect(answer).toContain("host of");
});

test("a host that does not answer times out", async () => {
  const port = await playTcp((socket) => void socket.resume());
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"], idleTimeoutMs: 300 });
  const answer = await exchange(proxy, get(`http://good.example:${port}/`));
  expect(answer).toMatch(/^HTTP\/1\.1 504 good\.example:\d+ does not answer\r\n/);
});

test("a client that disconnects ends its request to the host", async () => {
  const heard: string[] = [];
  const port = await playTcp((socket) => {
    socket.once("data", () => heard.push("request"));
    socket.once("end", () => socket.end());
    socket.once("close", () => heard.push("close"));
  });
  // What is left may as well be a client that waits for its answer, so the host has that time to begin.
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"], headTimeoutMs: 4000 });
  const socket = await proxy.connect();
  socket.write(get(`http://good.example:${port}/`));
  await expect.poll(() => heard).toEqual(["request"]);
  expect(proxy.decisions).toHaveLength(1);
  socket.destroy();
  await expect.poll(() => heard).toEqual(["request", "close"]);
});

test("a refused request with a body gets its answer, and the connection stays usable", async () => {
  const port = await playHost();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const socket = await proxy.connect();
  const body = "x".repeat(1_000_000);
  socket.write(`POST http://evil.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 evil\.example is not in/);
  socket.write(get(`http://good.example:${port}/`));
  expect(await everything(socket)).toContain("host of");
});

test("on its port the proxy requires its password, and decides nothing without it", async () => {
  const port = await playHost();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const password = new URL(proxy.url).password;
  const url = `http://127.0.0.1:${proxy.port}`;
  const ask = async (authorization: string | undefined): Promise<number> => {
    const outgoing = startRequest(url, {
      path: `http://good.example:${port}/`,
      headers: authorization === undefined ? {} : { "proxy-authorization": authorization },
    });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode ?? 0;
  };
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
  expect(await ask(undefined)).toBe(407);
  expect(await ask(basic("fenced:wrong"))).toBe(407);
  expect(await ask(basic(`fenced:${password}x`))).toBe(407);
  expect(await ask(`Bearer ${password}`)).toBe(407);
  expect(proxy.decisions).toEqual([]);
  expect(await ask(basic(`fenced:${password}`))).toBe(200);
});
