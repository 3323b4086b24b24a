import { playTcp } from "@fenced/test-support/loopback-hosts";
import { expect, test } from "vitest";
import { exchange, get, startProxy } from "./support/places.ts";

test("a chunked body stays a body, even if thousands of headers come before Transfer-Encoding", async () => {
  const received: string[] = [];
  const port = await playTcp((socket) => {
    socket.on("data", (chunk: Buffer) => received.push(chunk.toString()));
    socket.on("data", () => received.join("").endsWith("0\r\n\r\n") && socket.end("HTTP/1.1 204 Done\r\n\r\n"));
  });
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"], idleTimeoutMs: 30_000 });
  const smuggled = "GET /other HTTP/1.1\r\nHost: a\r\n\r\n";
  const body = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
  const headers = `${"a:\r\n".repeat(2100)}Transfer-Encoding: chunked\r\nConnection: close\r\n`;
  const answer = await exchange(proxy, `GET http://good.example:${port}/ HTTP/1.1\r\nHost: a\r\n${headers}\r\n${body}`);
  expect(answer).toMatch(/^HTTP\/1\.1 204 Done/);
  expect(received.join("")).toContain("\r\nTransfer-Encoding: chunked\r\n");
  expect(received.join("").endsWith(`\r\n\r\n${body}`)).toBe(true);
});

test("a host that switches protocols without being asked is dropped at once", async () => {
  const port = await playTcp((socket) => {
    socket.resume();
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\nhello");
  });
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const answer = await exchange(proxy, get(`http://good.example:${port}/`));
  expect(answer).toMatch(/^HTTP\/1\.1 502 good\.example:\d+ closed the connection/);
});
