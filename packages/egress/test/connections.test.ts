import { once } from "node:events";
import { lstatSync } from "node:fs";
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createConnection, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { playHost, playTcp } from "@fenced/test-support/loopback-hosts";
import { expect, onTestFinished, test } from "vitest";
import { EgressProxy } from "../src/index.ts";
import { everything, exchange, startProxy, type TestProxy } from "./support/places.ts";

async function tunnel(proxy: TestProxy, host: string): Promise<Socket> {
  const socket = await proxy.connect();
  socket.write(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  socket.pause();
  // The host may have sent something already.
  const rest = answer.subarray(answer.indexOf("\r\n\r\n") + 4);
  if (rest.length > 0) socket.unshift(rest);
  return socket;
}

test("500 connections work in parallel, and one more is refused at once", { timeout: 120_000 }, async () => {
  const port = await playTcp((socket) => void socket.pipe(socket));
  const proxy = await startProxy({ allow: ["many.example", "127.0.0.1"] });
  const sockets = await Promise.all(Array.from({ length: 500 }, () => tunnel(proxy, `many.example:${port}`)));
  expect(proxy.proxy.connections).toBe(500);
  expect(await everything(await proxy.connect())).toMatch(/^HTTP\/1\.1 503 too many connections: the limit is 500\r\n/);
  const echoes = await Promise.all(
    sockets.map((socket, index) => {
      socket.end(`number ${index}`);
      return everything(socket);
    }),
  );
  expect(echoes).toEqual(sockets.map((_, index) => `number ${index}`));
  await expect.poll(() => proxy.proxy.connections, { timeout: 60_000 }).toBe(0);
  expect(await exchange(proxy, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
});

test("counts what it has relayed, on connections that are open and on those that have ended", async () => {
  const port = await playTcp((socket) => void socket.pipe(socket));
  const proxy = await startProxy({ allow: ["echo.example", "127.0.0.1"] });
  expect(proxy.proxy.traffic).toEqual({ receivedBytes: 0, sentBytes: 0 });
  const [open, ended] = [await tunnel(proxy, `echo.example:${port}`), await tunnel(proxy, `echo.example:${port}`)];
  const answered = once(open, "data");
  open.resume();
  open.write("12345");
  await answered;
  expect(proxy.proxy.traffic).toEqual({ receivedBytes: 5, sentBytes: 5 });
  ended.end("0".repeat(100_000));
  expect(await everything(ended)).toHaveLength(100_000);
  await expect.poll(() => proxy.proxy.connections).toBe(1);
  expect(proxy.proxy.traffic).toEqual({ receivedBytes: 100_005, sentBytes: 100_005 });

  const served = await playHost();
  await exchange(proxy, `GET http://echo.example:${served}/page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  const { receivedBytes, sentBytes } = proxy.proxy.traffic;
  expect(receivedBytes).toBeGreaterThan(100_005);
  expect(sentBytes).toBeGreaterThan(100_005 + "GET /page".length);
});

test("a side that has ended its stream still receives from the other", async () => {
  const port = await playTcp((socket) => {
    let heard = "";
    socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
    socket.once("end", () => socket.end(`you said ${heard}`));
  });
  const proxy = await startProxy({ allow: ["half.example", "127.0.0.1"] });
  const asks = await tunnel(proxy, `half.example:${port}`);
  asks.end("all of it");
  expect(await everything(asks)).toBe("you said all of it");

  const other = await playTcp((socket) => {
    socket.end("first");
    let heard = "";
    socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
    socket.once("end", () => answers.push(heard));
  });
  const answers: string[] = [];
  const hears = await tunnel(proxy, `half.example:${other}`);
  const heard = Promise.all([once(hears, "data"), once(hears, "end")]);
  hears.resume();
  const [[first]] = (await heard) as [[Buffer], unknown];
  expect(first.toString()).toBe("first");
  hears.end("after your end");
  await expect.poll(() => answers).toEqual(["after your end"]);
  await expect.poll(() => proxy.proxy.connections).toBe(0);
});

test("a reset of one side reaches the other", async () => {
  const hosts: Socket[] = [];
  const port = await playTcp((socket) => {
    hosts.push(socket);
    socket.resume();
  });
  const proxy = await startProxy({ allow: ["reset.example", "127.0.0.1"] });
  const left = await tunnel(proxy, `reset.example:${port}`);
  await expect.poll(() => hosts.length).toBe(1);
  const broken = once(hosts[0] ?? left, "close");
  left.resetAndDestroy();
  await expect(broken).rejects.toThrow("ECONNRESET");
  const right = await tunnel(proxy, `reset.example:${port}`);
  await expect.poll(() => hosts.length).toBe(2);
  const failed = once(right, "close");
  hosts[1]?.resetAndDestroy();
  right.resume();
  await expect(failed).rejects.toThrow("ECONNRESET");
  await expect.poll(() => proxy.proxy.connections).toBe(0);
});

test("a client that does not read pauses the host", async () => {
  let sent = 0;
  const port = await playTcp((socket) => {
    socket.resume();
    const chunk = Buffer.alloc(65_536);
    const more = (): void => {
      let ready = true;
      while (ready && !socket.destroyed) {
        ready = socket.write(chunk);
        sent += chunk.length;
      }
    };
    socket.on("drain", more);
    more();
  });
  const proxy = await startProxy({ allow: ["flood.example", "127.0.0.1"] });
  const socket = await tunnel(proxy, `flood.example:${port}`);
  let before = -1;
  await expect
    .poll(
      () => {
        const still = sent === before;
        before = sent;
        return still;
      },
      { interval: 300, timeout: 60_000 },
    )
    .toBe(true);
  // No more than the kernel's buffers hold.
  expect(sent).toBeLessThan(64_000_000);
  socket.destroy();
});

test("an idle tunnel is closed", async () => {
  const port = await playTcp((socket) => void socket.resume());
  const proxy = await startProxy({ allow: ["quiet.example", "127.0.0.1"], idleTimeoutMs: 300 });
  const socket = await tunnel(proxy, `quiet.example:${port}`);
  await everything(socket);
  await expect.poll(() => proxy.proxy.connections).toBe(0);
});

test("close() ends every connection, and no new ones are accepted", async () => {
  const port = await playTcp((socket) => void socket.resume());
  const proxy = await startProxy({ allow: ["open.example", "127.0.0.1"] });
  const socket = await tunnel(proxy, `open.example:${port}`);
  const idle = await proxy.connect();
  await Promise.all([proxy.proxy.close(), everything(socket), everything(idle)]);
  expect(await everything(await proxy.connect())).toBe("");
  await expect(proxy.proxy.listen()).rejects.toThrow("The proxy is closed");
  await proxy.proxy.close();
});

test("it listens on a Unix socket that only its owner can use", async () => {
  const port = await playHost();
  const directory = await mkdtemp(path.join(tmpdir(), "egress-"));
  await chmod(directory, 0o700);
  onTestFinished(() => rm(directory, { recursive: true }));
  await using proxy = new EgressProxy({
    allow: ["socket.example", "127.0.0.1"],
    resolve: () => Promise.resolve(["127.0.0.1"]),
  });
  const file = path.join(directory, "proxy.sock");
  const listening = proxy.listen({ path: file });
  // At once: others could connect before the mode is set later.
  expect(lstatSync(file, { bigint: true }).mode & 0o777n).toBe(0o600n);
  const other = path.join(directory, "other");
  await writeFile(other, "", { mode: 0o640 });
  expect((await stat(other)).mode & 0o777).toBe(0o640);
  await listening;
  const socket = createConnection(file);
  socket.write(`GET http://socket.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(await everything(socket)).toContain("host of socket.example");
});

test("an onRequest that throws does not break the connection", async () => {
  const port = await playHost();
  await using proxy = new EgressProxy({
    allow: ["127.0.0.1"],
    onRequest: () => {
      throw new Error("mine");
    },
  });
  const { url } = await proxy.listen();
  const socket = createConnection(Number(new URL(url).port), "127.0.0.1");
  const authorization = Buffer.from(`fenced:${new URL(url).password}`).toString("base64");
  socket.write(
    `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nProxy-Authorization: Basic ${authorization}\r\n\r\n`,
  );
  expect(await everything(socket)).toContain("host of");
});

test.each([
  [{ allow: ["https://pypi.org"] }, "without `https://`"],
  [{ allow: ["pypi.org:0"] }, "a port from 1 to 65535"],
  [{ allow: ["*.*.org"] }, "must be a host name"],
  [{ allow: ["*.127.0.0.1"] }, "must be a host name"],
  [{ allow: ["pypi .org"] }, "must be a host name"],
  [{ allow: "pypi.org" }, "must be a list of hosts"],
  [{ allow: [], alow: [] }, "unknown option"],
  [{ allow: [], maxConnections: 0 }, "must be a whole number"],
  [{ allow: ["b.example"], credentials: [{ host: "a.example", header: "x", value: () => "1" }] }, "covered by `allow`"],
  [{ allow: ["*"], credentials: [{ host: "*.example", header: "x", value: () => "1" }] }, "one host"],
  [{ allow: ["*"], credentials: [{ host: "a.example", header: "x y", value: () => "1" }] }, "a header name"],
  [{ allow: ["*"], credentials: [{ host: "a.example", header: "Host", value: () => "1" }] }, "how the message is sent"],
  [{ allow: ["*"], credentials: [{ host: "a.example", header: "x", value: "secret" }] }, "must be a function"],
])("invalid options are rejected with what to do: %j", (options, words) => {
  const make = (): EgressProxy => new EgressProxy(options as ConstructorParameters<typeof EgressProxy>[0]);
  expect(make).toThrow(words);
  expect(make).not.toThrow("secret");
});
