import { fc, fuzz } from "@fenced/test-support/fuzz";
import { playTcp } from "@fenced/test-support/loopback-hosts";
import { expect, test } from "vitest";
import { exchange, get, startProxy } from "./support/places.ts";

/** A host that answers every request, and remembers what it was sent. */
async function playHostFor(heard: string[]): Promise<number> {
  return playTcp((socket) => {
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.on("data", (chunk: Buffer) => {
      heard.push(chunk.toString("latin1"));
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    });
  });
}

test("no bytes make the proxy of HTTP reach a host that is not listed, or stop", async () => {
  const heard: string[] = [];
  const port = await playHostFor(heard);
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const target = fc.constantFrom(
    `http://good.example:${port}/`,
    `http://evil.example:${port}/`,
    `http://good.example@evil.example:${port}/`,
    `http://good.example:${port}@evil.example:${port}/`,
    `http://evil.example:${port}#good.example`,
    `good.example:${port}`,
    `evil.example:${port}`,
    `//evil.example:${port}/`,
    "/",
    "*",
  );
  const piece = fc.constantFrom(
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    "\0",
    "Host: good.example",
    "Host: evil.example",
    "Content-Length: 5",
    "Content-Length: 0",
    "Transfer-Encoding: chunked",
    "Connection: close",
    "Upgrade: h2c",
    "Expect: 100-continue",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    `GET http://evil.example:${port}/ HTTP/1.1\r\n`,
  );
  const method = fc.constantFrom("GET", "POST", "CONNECT", "OPTIONS", "PRI", "get", "");
  const version = fc.constantFrom("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "");
  const request = fc
    .tuple(method, target, version, fc.array(piece, { maxLength: 10 }))
    .map(([name, to, protocol, rest]) => `${name} ${to} ${protocol}\r\n${rest.join("")}\r\n\r\n`);
  await fuzz(
    fc.asyncProperty(request, async (bytes) => {
      await exchange(proxy, Buffer.from(`${bytes}Connection: close\r\n\r\n`, "latin1"), { half: true });
    }),
    0.3,
  );
  expect(proxy.lookups).not.toContain("evil.example");
  expect(
    proxy.decisions.filter(({ host, allowed }) => allowed && !["good.example", "127.0.0.1"].includes(host)),
  ).toEqual([]);
  expect(await exchange(proxy, get(`http://good.example:${port}/`))).toMatch(/^HTTP\/1\.1 200 OK/);
});

test("no bytes make the proxy of SOCKS reach a host that is not listed, or stop", async () => {
  const heard: string[] = [];
  const port = await playHostFor(heard);
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const name = (host: string): number[] => [3, host.length, ...Buffer.from(host)];
  const address = fc.oneof(
    fc.constantFrom(
      name("good.example"),
      name("evil.example"),
      [1, 127, 0, 0, 1],
      [4, ...Array.from({ length: 15 }, () => 0), 1],
    ),
    fc.array(fc.nat(255), { maxLength: 20 }),
  );
  const greeting = fc.oneof(fc.constantFrom([5, 1, 0], [5, 2, 0, 2], [4, 1]), fc.array(fc.nat(255), { maxLength: 6 }));
  const command = fc.tuple(fc.constantFrom(5, 4, 0), fc.constantFrom(1, 2, 3, 255), fc.constantFrom(0, 1));
  const bytes = fc
    .tuple(greeting, command, address, fc.boolean())
    .map(([hello, words, to, own]) => [...hello, ...words, ...to, ...(own ? [port >> 8, port & 255] : [])]);
  await fuzz(
    fc.asyncProperty(bytes, async (each) => {
      await exchange(proxy, Buffer.from(each), { half: true });
    }),
    0.3,
  );
  expect(proxy.lookups).not.toContain("evil.example");
  expect(
    proxy.decisions.filter(({ host, allowed }) => allowed && !["good.example", "127.0.0.1"].includes(host)),
  ).toEqual([]);
  expect(await exchange(proxy, get(`http://good.example:${port}/`))).toMatch(/^HTTP\/1\.1 200 OK/);
});
