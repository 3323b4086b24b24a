import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { playHost, playTcp } from "@fenced/test-support/loopback-hosts";
import { expect, onTestFinished, test } from "vitest";
import { everything, startProxy, type TestProxy } from "./support/places.ts";

const request = "GET / HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\r\n";

function address(host: string | readonly number[], port: number): Buffer {
  const end = Buffer.alloc(2);
  end.writeUInt16BE(port);
  if (typeof host === "string") return Buffer.concat([Buffer.from([3, host.length]), Buffer.from(host, "latin1"), end]);
  return Buffer.concat([Buffer.from([host.length === 4 ? 1 : 4, ...host]), end]);
}

/** The code of the proxy's reply, and what comes after it. */
async function socks(
  proxy: TestProxy,
  target: Buffer,
  command = 1,
): Promise<{ reply: number | undefined; rest: string }> {
  const socket = await proxy.connect();
  // All at once, as an eager client would.
  socket.write(Buffer.concat([Buffer.from([5, 2, 1, 0, 5, command, 0]), target, Buffer.from(request)]));
  const answer = Buffer.from(await everything(socket), "latin1");
  expect([...answer.subarray(0, 2)]).toEqual([5, 0]);
  return { reply: answer[3], rest: answer.subarray(12).toString() };
}

const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1];

test("every type of address is accepted", async () => {
  const port = await playHost();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  for (const host of ["good.example", "GOOD.example.", "127.0.0.1", "0x7f.1", [127, 0, 0, 1], mapped]) {
    const { reply, rest } = await socks(proxy, address(host, port));
    expect([host, reply]).toEqual([host, 0]);
    expect(rest).toContain("host of inner");
  }
  expect(new Set(proxy.decisions.map(({ protocol, allowed }) => `${protocol} ${allowed}`))).toEqual(
    new Set(["socks5 true"]),
  );
});

test("unlisted hosts are refused with every type of address", async () => {
  const port = await playHost();
  const proxy = await startProxy({ allow: ["good.example"] });
  const hosts = [
    "evil.example",
    "127.0.0.1",
    "2130706433",
    "::1",
    [127, 0, 0, 1],
    [10, 0, 0, 1],
    mapped,
    [...Array(15).fill(0), 1],
    "",
  ];
  for (const host of hosts) {
    expect([host, (await socks(proxy, address(host, port))).reply]).toEqual([host, 2]);
  }
  // So is a listed name that resolves to a loopback address.
  expect((await socks(proxy, address("good.example", port))).reply).toBe(2);
  expect(proxy.decisions.filter(({ allowed }) => allowed)).toEqual([]);
  expect(proxy.decisions).toHaveLength(hosts.length + 1);
});

test("BIND, UDP and unknown types of addresses are answered with error codes", async () => {
  const proxy = await startProxy({ allow: ["good.example"] });
  expect((await socks(proxy, address("good.example", 80), 2)).reply).toBe(7);
  expect((await socks(proxy, address("good.example", 80), 3)).reply).toBe(7);
  expect((await socks(proxy, Buffer.from([9, 1, 2, 3]))).reply).toBe(8);
});

test("a host that does not listen is unreachable", async () => {
  const proxy = await startProxy({ allow: ["127.0.0.1"] });
  expect((await socks(proxy, address("127.0.0.1", 1))).reply).toBe(4);
});

test("a greeting that arrives byte by byte is understood", async () => {
  const port = await playHost();
  const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
  const socket = await proxy.connect();
  socket.setNoDelay(true);
  const answer = everything(socket);
  for (const byte of Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0]), address("good.example", port)])) {
    socket.write(Buffer.from([byte]));
    await setImmediate();
  }
  socket.write(request);
  expect(await answer).toContain("host of inner");
});

test("on its port the proxy requires its password", async () => {
  const port = await playTcp((socket) => void socket.end("hello"));
  const proxy = await startProxy({ allow: ["127.0.0.1"] });
  const password = new URL(proxy.url).password;
  const open = async (bytes: Buffer): Promise<string> => {
    const socket: Socket = connect(proxy.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    socket.write(bytes);
    return everything(socket);
  };
  const login = (secret: string): Buffer =>
    Buffer.concat([
      Buffer.from([5, 1, 2, 1, 6]),
      Buffer.from("fenced"),
      Buffer.from([secret.length]),
      Buffer.from(secret),
      Buffer.from([5, 1, 0]),
      address([127, 0, 0, 1], port),
    ]);
  expect(await open(Buffer.from([5, 1, 0]))).toBe("\x05\xff");
  expect(await open(login("wrong"))).toBe("\x05\x02\x01\x01");
  expect(proxy.decisions).toEqual([]);
  expect(await open(login(password))).toBe(`\x05\x02\x01\0\x05\0\0\x01${"\0".repeat(6)}hello`);
});
