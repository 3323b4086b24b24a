import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@fenced/test-support";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "./support/start-server.ts";

function envelope(text: string, flags = 0): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([header, Buffer.from(text)]);
}

describe("hostile clients", needs("python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  let headers: Record<string, string> = {};
  beforeAll(async () => {
    server = await startServer();
    sandbox = await Sandbox.create("base", server.client);
    headers = {
      "e2b-sandbox-id": sandbox.sandboxId,
      "x-access-token": String(Reflect.get(sandbox, "envdAccessToken")),
      "content-type": "application/json",
    };
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const post = (path: string, body: string | Uint8Array, more: Record<string, string> = {}) =>
    fetch(`${server.url}${path}`, { method: "POST", headers: { ...headers, ...more }, body });

  it.each([
    ["no JSON", "/filesystem.Filesystem/Stat", "{"],
    ["another type", "/filesystem.Filesystem/Stat", '{"path": 3}'],
    ["deep JSON", "/filesystem.Filesystem/Stat", `{"path": ${"[".repeat(5000)}${"]".repeat(5000)}}`],
    ["a NUL character", "/filesystem.Filesystem/Stat", '{"path": "a\\u0000b"}'],
    ["another user's home", "/filesystem.Filesystem/Stat", '{"path": "~root/x"}'],
    ["no selector", "/process.Process/SendSignal", '{"signal": "SIGNAL_SIGKILL"}'],
    ["bytes that are no base64", "/process.Process/SendInput", '{"process": {"pid": 1}, "input": {"stdin": "%"}}'],
  ])("get an error for %s", async (_what, path, body) => {
    const answer = await post(path, body);
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: "invalid_argument" }]);
  });

  it.each([
    ["a compressed envelope", envelope("{}", 1)],
    ["a wrong length", envelope("{}").subarray(0, 6)],
    ["nothing", Buffer.alloc(0)],
    ["a wrong program", envelope('{"process": {"cmd": ""}}')],
  ])("get an error in the stream for %s", async (_what, body) => {
    const answer = await post("/process.Process/Start", body, { "content-type": "application/connect+json" });
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect([answer.status, bytes[0]]).toEqual([200, 2]);
    expect(JSON.parse(bytes.subarray(5).toString())).toMatchObject({ error: { code: "invalid_argument" } });
  });

  it("cannot send messages without end, or unknown users and methods", async () => {
    const large = await post("/filesystem.Filesystem/Stat", Buffer.alloc(17_000_000, " "));
    expect([large.status, await large.json()]).toMatchObject([429, { code: "resource_exhausted" }]);
    const user = { authorization: `Basic ${Buffer.from("moon:").toString("base64")}` };
    expect((await post("/filesystem.Filesystem/Stat", "{}", user)).status).toBe(401);
    expect((await post("/process.Process/Nothing", "{}")).status).toBe(501);
    expect((await post("/init", "{}")).status).toBe(404);
    expect((await fetch(server.url, { headers: { "e2b-sandbox-id": "../x" } })).status).toBe(502);
  });

  it("that stop reading make only their own command wait", async () => {
    const body = envelope('{"process": {"cmd": "/bin/sh", "args": ["-c", "yes"]}, "stdin": false}');
    const lines = Object.entries({ ...headers, host: "x", "content-length": String(body.length) });
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.write(
      `POST /process.Process/Start HTTP/1.1\r\n${lines.map((line) => line.join(": ")).join("\r\n")}\r\n\r\n`,
    );
    socket.write(body);
    socket.pause();
    await sleep(300);
    const before = process.memoryUsage().rss;
    expect((await sandbox.commands.run("echo here")).stdout).toBe("here\n");
    await sleep(700);
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
    socket.destroy();
    for (const { pid, cmd } of await sandbox.commands.list()) if (cmd === "/bin/sh") await sandbox.commands.kill(pid);
  });

  it("get no half of a file whose upload breaks without an error, and no other's", async () => {
    const length = 1_000_000;
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    const lines = Object.entries({
      ...headers,
      host: "x",
      "content-type": "application/octet-stream",
      "content-length": String(length),
    });
    const head = lines.map((line) => line.join(": ")).join("\r\n");
    socket.write(`POST /files?path=broken.bin HTTP/1.1\r\n${head}\r\n\r\n`);
    socket.write(Buffer.alloc(1000));
    await expect.poll(() => sandbox.files.exists("broken.bin")).toBe(true);
    socket.destroy();
    expect((await sandbox.commands.run("echo still here")).stdout).toBe("still here\n");
    await expect(sandbox.files.write("/dev/full", "text")).rejects.toThrow(/is not a file/);
  });
});
