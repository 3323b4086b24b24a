import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { playTcp } from "@fenced/test-support/loopback-hosts";
import { expect, test } from "vitest";
import { startProxy, type TestProxy } from "./support/places.ts";

const size = 24 * 1_048_576;
const block = randomBytes(1_048_573);

/** A different sequence for each number, in which no two blocks are alike. */
function* content(number: number): Generator<Buffer, void, void> {
  for (let sent = 0; sent < size;) {
    const head = Buffer.from(`${number}:${sent}.`);
    const piece = Buffer.concat([head, block]).subarray(0, size - sent);
    sent += piece.length;
    yield piece;
  }
}

function digest(pieces: Iterable<Buffer>): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

async function playContent(): Promise<number> {
  return playTcp((socket: Socket) => {
    socket.once("data", (asked: Buffer) => {
      void (async () => {
        for (const piece of content(Number(asked.toString()))) if (!socket.write(piece)) await once(socket, "drain");
        socket.end();
      })();
    });
  });
}

/** Fetches a sequence and returns its digest; a slow client stops reading now and then. */
async function fetched(client: Duplex, port: number, { number, slow }: { number: number; slow: boolean }) {
  client.write(`CONNECT good.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const hash = createHash("sha256");
  let head = "";
  let length = 0;
  for await (const piece of client as AsyncIterable<Buffer>) {
    if (head.endsWith("\r\n\r\n")) {
      hash.update(piece);
      length += piece.length;
      if (slow && length % 7 === 0) await sleep(5);
      continue;
    }
    head += piece.toString();
    expect(head).toMatch(/^HTTP\/1.1 200 [^]*\r\n\r\n$/);
    client.end(String(number));
  }
  return hash.digest("hex");
}

/** A connection that is not a socket; it may keep references to the chunks written to it. */
function withoutSocket({ proxy }: TestProxy): Duplex {
  const [near, far] = duplexPair({ highWaterMark: 4_194_304 });
  proxy.handle(far);
  return near;
}

test("large parallel downloads arrive intact, however fast each is read", async () => {
  const port = await playContent();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const numbers = [1, 2, 3, 4, 5, 6];
  const digests = numbers.map(async (number) => {
    const client = number % 3 === 0 ? withoutSocket(proxy) : await proxy.connect();
    return fetched(client, port, { number, slow: number % 2 === 0 });
  });
  expect(await Promise.all(digests)).toEqual(numbers.map((number) => digest(content(number))));
  await expect.poll(() => proxy.proxy.connections, { timeout: 60_000 }).toBe(0);
});

test("what a host sends before it is asked arrives in full", async () => {
  const port = await playTcp((socket) => socket.end(Buffer.alloc(300_000, "early ")));
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const client = await proxy.connect();
  client.write(`CONNECT good.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const pieces: Buffer[] = [];
  for await (const piece of client as AsyncIterable<Buffer>) pieces.push(piece);
  const text = Buffer.concat(pieces).toString();
  expect(text.slice(text.indexOf("\r\n\r\n") + 4)).toBe("early ".repeat(50_000));
});
