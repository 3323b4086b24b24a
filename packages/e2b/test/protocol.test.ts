import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@fenced/test-support";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { envelope, headersFor, rawRequest } from "./support/raw-request.ts";
import { apiKey, startServer, type TestServer } from "./support/start-server.ts";

describe("hostile clients", needs("python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  let headers: Record<string, string> = {};
  beforeAll(async () => {
    server = await startServer();
    sandbox = await Sandbox.create("base", server.client);
    headers = { ...headersFor(sandbox), "content-type": "application/json" };
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

  it("cannot fill the server's memory with requests that they never complete", async () => {
    const line = "POST /filesystem.Filesystem/Stat";
    const open: Socket[] = [];
    const refused: string[] = [];
    // Of 20 times 15 MB, 17 fit.
    for (let index = 0; index < 20; index += 1) {
      const socket = rawRequest(server.url, line, { ...headers, "content-length": "16000000" });
      socket.on("data", (data) => refused.push(data.toString().slice(0, 12)));
      socket.write(Buffer.alloc(15_000_000, " "));
      open.push(socket);
    }
    await expect.poll(() => refused, { timeout: 60_000 }).toEqual(Array<string>(3).fill("HTTP/1.1 429"));
    const late = await post("/filesystem.Filesystem/Stat", Buffer.alloc(15_000_000, " "));
    expect([late.status, await late.json()]).toMatchObject([429, { code: "resource_exhausted" }]);
    for (const socket of open) socket.destroy();
    const again = () => post("/filesystem.Filesystem/Stat", `{"path": "."}${" ".repeat(15_000_000)}`);
    await expect.poll(async () => (await again()).status, { timeout: 60_000 }).toBe(200);
  });

  it("that stop reading make only their own command wait", async () => {
    const body = envelope('{"process": {"cmd": "/bin/sh", "args": ["-c", "yes"]}, "stdin": false}');
    const all = { ...headers, "content-length": String(body.length) };
    const socket = rawRequest(server.url, "POST /process.Process/Start", all);
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
    const all = { ...headers, "content-type": "application/octet-stream", "content-length": String(length) };
    const socket = rawRequest(server.url, "POST /files?path=broken.bin", all);
    // More than what is taken in one step.
    socket.write(Buffer.alloc(500_000));
    await expect.poll(() => sandbox.files.exists("broken.bin")).toBe(true);
    socket.destroy();
    expect((await sandbox.commands.run("echo still here")).stdout).toBe("still here\n");
    await expect(sandbox.files.write("/dev/full", "text")).rejects.toThrow(/is not a file/);
  });

  it("cannot fill the server's memory with input that nobody reads", async () => {
    const { pid } = await sandbox.commands.run("sleep 614", { background: true, stdin: true, timeoutMs: 0 });
    const stdin = Buffer.alloc(9_000_000).toString("base64");
    const leaving = new AbortController();
    // Not by E2B's client, which takes seconds to encode that much, and in which this process does nothing else.
    const send = (to: number, signal?: AbortSignal) =>
      fetch(`${server.url}/process.Process/SendInput`, {
        method: "POST",
        headers,
        body: JSON.stringify({ process: { pid: to }, input: { stdin } }),
        ...(signal && { signal }),
      });
    const first = send(pid, leaving.signal).catch(() => {});
    await expect.poll(async () => (await send(pid, AbortSignal.timeout(20_000)).catch(() => first))?.status).toBe(429);
    leaving.abort();
    await first;
    expect((await send(pid)).status).toBe(429);
    expect(await sandbox.commands.kill(pid)).toBe(true);
    // What was never read does not count any more.
    const cat = await sandbox.commands.run("cat > /dev/null", { background: true, stdin: true });
    expect((await send(cat.pid)).status).toBe(200);
    await sandbox.commands.closeStdin(cat.pid);
    expect((await cat.wait()).exitCode).toBe(0);
  });

  it("that send a body slowly cannot bring back a sandbox which has ended meanwhile", async () => {
    const other = await Sandbox.create("base", server.client);
    const body = '{"timeout": 3600}';
    const all = { "x-api-key": apiKey, "content-length": String(body.length) };
    const socket = rawRequest(server.url, `POST /sandboxes/${other.sandboxId}/timeout`, all);
    socket.write(body.slice(0, 5));
    await sleep(100);
    await other.kill();
    const answer = once(socket, "data");
    socket.write(body.slice(5));
    expect(String(await answer)).toMatch(/^HTTP\/1.1 404 /);
    socket.destroy();
  });

  it("get an error for pages of nothing, and times that are none", async () => {
    for (const query of ["limit=0", "startedAfter=never", "nextToken=x", "metadata=%25zz"]) {
      const answer = await fetch(`${server.url}/v2/sandboxes?${query}`, { headers: { "x-api-key": apiKey } });
      expect([query, answer.status]).toEqual([query, 400]);
    }
  });

  it("that leave a stream of events unread leave nothing watched", async () => {
    const name = "x".repeat(200);
    await sandbox.files.makeDir("busy");
    const body = envelope('{"path": "busy"}');
    const all = { ...headers, "content-type": "application/connect+json", "content-length": String(body.length) };
    const socket = rawRequest(server.url, "POST /filesystem.Filesystem/WatchDir", all);
    socket.write(body);
    socket.pause();
    await sandbox.commands.run(`cd busy; for i in $(seq 40000); do : > ${name}; done`, { timeoutMs: 0 });
    socket.destroy();
    const watched = "for p in $(pgrep -f '[T]he files of a sandbox'); do ls -l /proc/$p/fd; done 2>/dev/null";
    const cwd = (await sandbox.commands.run("pwd -P")).stdout.trim();
    const own = watched.replace("do ", `do [ "$(readlink /proc/$p/cwd)" = ${cwd} ] && `);
    await expect.poll(async () => (await sandbox.commands.run(`${own} | grep -c inotify || true`)).stdout).toBe("0\n");
  }, 120_000);
});
