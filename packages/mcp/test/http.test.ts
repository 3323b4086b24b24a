import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { machine } from "@fenced/test-support/machines";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type McpHttpServer, startMcpHttpServer } from "../src/index.ts";
import { call, python, textOf } from "./support/call.ts";
import { connectHttp, startCli, startHttp } from "./support/start.ts";

const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
});

/** Sends requests that no well-behaved client sends. */
async function post(url: string, headers: Record<string, string>, body = initialize) {
  const accept = "application/json, text/event-stream";
  const sent = request(url, { method: "POST", headers: { "content-type": "application/json", accept, ...headers } });
  sent.end(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve).once("error", reject);
  });
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

/** Connects as soon as there is room: a server notices a little later that a client has closed its streams. */
async function connectWhenIdle(server: McpHttpServer) {
  return vi.waitFor(() => connectHttp(server), { timeout: 60_000 });
}

const bearer = ({ token }: McpHttpServer) => ({ authorization: `Bearer ${token}` });
const where = "import os\nprint(os.getcwd())";

describe("access", () => {
  it("requires the token", async () => {
    const server = await startHttp();
    expect(server.token).toMatch(/^[\w-]{43}$/);
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect(await post(server.url, bearer(server))).toMatchObject({ status: 200 });
    for (const authorization of ["", "Bearer", "Bearer wrong", `Basic ${server.token}`, `Bearer ${server.token}x`]) {
      const refused = await post(server.url, { authorization });
      expect(refused).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer" } });
      expect(refused.body).toContain("Authorization: Bearer <token>");
    }
  });

  it("is limited to the server's own host names", async () => {
    const server = await startHttp({ allowedHosts: ["Tools.example", "2001:DB8:0:0::5"] });
    for (const host of ["evil.example", "127.0.0.1.evil.example", "evil.example@127.0.0.1", "["]) {
      expect(await post(server.url, { ...bearer(server), host })).toMatchObject({ status: 403 });
    }
    for (const origin of ["https://evil.example", "null", "file://"]) {
      expect(await post(server.url, { ...bearer(server), origin })).toMatchObject({ status: 403 });
    }
    for (const host of ["localhost:1234", "[::1]:80", "tools.example", "[2001:db8::5]"]) {
      expect(await post(server.url, { ...bearer(server), host, origin: `http://${host}` })).toMatchObject({
        status: 200,
      });
    }
  });

  it("is possible for pages of allowed origins", async () => {
    const origin = "https://app.example";
    const server = await startHttp({ allowedOrigins: [origin] });
    const asked = {
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type,mcp-protocol-version",
    };
    const ask = async (from: string) => fetch(server.url, { method: "OPTIONS", headers: { origin: from, ...asked } });
    for (const from of [origin, "http://localhost:6274"]) {
      const { status, headers } = await ask(from);
      expect({ status, ...Object.fromEntries(headers) }).toMatchObject({
        status: 204,
        "access-control-allow-origin": from,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": asked["access-control-request-headers"],
        vary: "origin",
      });
      const headersOf = async (more: Record<string, string>) =>
        (await post(server.url, { origin: from, ...more })).headers;
      const readable = {
        "access-control-allow-origin": from,
        "access-control-expose-headers": expect.stringContaining("mcp-session-id"),
      };
      expect(await headersOf(bearer(server))).toMatchObject(readable);
      // A page must also learn why it was refused.
      expect(await headersOf({})).toMatchObject(readable);
    }
    const other = await ask("https://evil.example");
    expect([other.status, other.headers.get("access-control-allow-origin")]).toEqual([403, null]);
    expect((await post(server.url, bearer(server))).headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("is limited to one path and to existing sessions", async () => {
    const server = await startHttp();
    expect(await post(server.url.replace("/mcp", "/"), bearer(server))).toMatchObject({ status: 404 });
    const headers = { ...bearer(server), "mcp-session-id": "made-up" };
    expect(await post(server.url, headers)).toMatchObject({
      status: 404,
      body: expect.stringContaining("Session not found"),
    });
  });

  it("keeps no session for a request that does not start one", async () => {
    const server = await startHttp({ maxSessions: 1 });
    const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    for (const body of [list, list, "{", ""]) expect((await post(server.url, bearer(server), body)).status).toBe(400);
    expect(await post(server.url, bearer(server))).toMatchObject({ status: 200 });
  });
});

describe("sessions", needs("python3"), () => {
  it("have their own workspaces, which are deleted with them", async () => {
    const server = await startHttp();
    const [one, other] = await Promise.all([connectHttp(server), connectHttp(server)]);
    const workspaces = await Promise.all([python(one.client, where), python(other.client, where)]);
    const [mine = "", others = ""] = workspaces.map((path) => path.trim());
    expect(mine).not.toBe(others);
    await call(one.client, "write_file", { path: "secret", content: "s" });
    expect(textOf(await call(other.client, "list_files"))).toBe("There are no files.");

    await one.transport.terminateSession();
    // At once: terminateSession() returns when the executor has stopped.
    expect([existsSync(mine), existsSync(others)]).toEqual([false, true]);
    await server.close();
    expect(existsSync(others)).toBe(false);
    await expect(call(other.client, "list_files")).rejects.toBeInstanceOf(Error);
  });

  it("return a long text in pieces, without splitting characters", async () => {
    const { client } = await connectHttp(await startHttp({ maxOutputCharacters: 3 }));
    await call(client, "write_file", { path: "long.txt", content: "ab😀cd" });
    const read = async (offset: number) => textOf(await call(client, "read_file", { path: "long.txt", offset }));
    expect(await read(0)).toBe("ab😀\n[Characters 0 to 4 of 6. Call again with offset 4 for more.]");
    expect(await read(4)).toBe("cd\n[Characters 4 to 6 of 6.]");
  });

  it("are limited in number, and make room when they end", async () => {
    const server = await startHttp({ maxSessions: 1 });
    const { client, transport } = await connectHttp(server);
    const workspace = (await python(client, where)).trim();
    expect(await post(server.url, bearer(server))).toMatchObject({
      status: 503,
      body: expect.stringContaining("limit of sessions"),
    });
    await transport.terminateSession();
    await expect.poll(() => existsSync(workspace), { timeout: 60_000 }).toBe(false);
    await expect.poll(async () => (await post(server.url, bearer(server))).status, { timeout: 60_000 }).toBe(200);
  });

  it("make room for new clients once their client has closed, the longest idle first", async () => {
    const server = await startHttp({ maxSessions: 2 });
    const [first, second] = [await connectHttp(server), await connectHttp(server)];
    const workspaces = [await python(first.client, where), await python(second.client, where)].map((path) =>
      path.trim(),
    );
    // What the official client's close() does: it ends its streams and sends no DELETE.
    await second.client.close();
    await python(first.client, where);
    await first.client.close();
    for (const evicted of [1, 0]) {
      const { client } = await connectWhenIdle(server);
      expect(existsSync(workspaces[evicted] ?? "")).toBe(false);
      expect(existsSync(workspaces[1 - evicted] ?? "")).toBe(evicted === 1);
      expect(existsSync((await python(client, where)).trim())).toBe(true);
    }
    expect(await post(server.url, bearer(server))).toMatchObject({ status: 503 });
  });

  it("end when they have been idle for sessionIdleMs", async () => {
    const server = await startHttp({ maxSessions: 1, sessionIdleMs: 4000 });
    const { client } = await connectHttp(server);
    const workspace = (await python(client, where)).trim();
    // The client's open stream keeps the session alive for longer than it may be idle.
    await sleep(6000);
    expect(existsSync(workspace)).toBe(true);
    expect((await python(client, where)).trim()).toBe(workspace);
    await client.close();
    await expect.poll(() => existsSync(workspace), { timeout: 60_000 }).toBe(false);
  });

  it("end even if their client left before the executor was created", async () => {
    const made: LocalCommandLineCodeExecutor[] = [];
    const createExecutor = async () => {
      const executor = new LocalCommandLineCodeExecutor();
      await executor.start();
      made.push(executor);
      sent.destroy();
      await sleep(200);
      return executor;
    };
    const server = await startHttp({ createExecutor, maxSessions: 1, sessionIdleMs: 100 });
    const accept = "application/json, text/event-stream";
    const headers = { "content-type": "application/json", accept, ...bearer(server) };
    const sent = request(server.url, { method: "POST", headers }).on("error", () => {});
    sent.end(initialize);
    await expect.poll(() => made.length, { timeout: 60_000 }).toBe(1);
    await expect
      .poll(async () => (await post(server.url, bearer(server))).status, { timeout: 60_000, interval: 300 })
      .toBe(200);
  });

  it("that cannot be created are an error, and take up no room", async () => {
    const told: unknown[] = [];
    const createExecutor = () => new LocalCommandLineCodeExecutor({ virtualEnv: "/nowhere" });
    const server = await startHttp({ createExecutor, maxSessions: 1, onError: (error) => told.push(error) });
    for (const _ of [1, 2]) {
      expect(await post(server.url, bearer(server))).toMatchObject({
        status: 500,
        body: expect.stringContaining("/nowhere"),
      });
    }
    expect(told).toHaveLength(2);
  });
});

describe("requests", () => {
  it("hold only so many bytes in total while they arrive, for each user", async () => {
    const server = await startHttp({ maxRequestBytes: 100_000 });
    const unfinished = Array.from({ length: 6 }, () => {
      const headers = { ...bearer(server), "content-type": "application/json", "content-length": "100000" };
      const sent = request(server.url, { method: "POST", headers }).on("error", () => {});
      sent.write("x".repeat(90_000));
      onTestFinished(() => void sent.destroy());
      return once(sent, "response").then(() => sent);
    });
    const refused = await Promise.race(unfinished);
    expect(await post(server.url, bearer(server), " ".repeat(90_000))).toMatchObject({
      status: 429,
      body: expect.stringContaining("too many bytes in total"),
    });
    refused.destroy();
    expect((await post(server.url, bearer(server))).status).toBe(200);
  });

  it("carry something while the code is silent, so that nobody in between gives up", needs("python3"), async () => {
    const server = await startHttp({ heartbeatMs: 20 });
    const { client } = await connectHttp(server);
    const messages: string[] = [];
    const code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')";
    const finished = client.callTool({ name: "run_code", arguments: { language: "python", code } }, undefined, {
      onprogress: ({ message = "" }) => messages.push(message),
    });
    await expect.poll(() => messages.length).toBeGreaterThan(2);
    expect(messages[0]).toMatch(/^Still running, after \d+ s\.$/);
    await call(client, "write_file", { path: "go", content: "" });
    expect(await finished).toMatchObject({ content: [{ text: "done\n" }] });

    const session = String((await post(server.url, bearer(server))).headers["mcp-session-id"]);
    const headers = { ...bearer(server), "mcp-session-id": session, accept: "text/event-stream" };
    const silent = await fetch(server.url, { headers });
    const reader = silent.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toMatch(/^(:\n\n)+$/);
    await reader?.cancel();
  });

  it("are rejected if they are larger than the limit", async () => {
    const server = await startHttp({ maxRequestBytes: 1000 });
    const large = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "x".repeat(1000) });
    expect(await post(server.url, bearer(server), large)).toMatchObject({
      status: 413,
      body: expect.stringContaining("larger than 1000 bytes"),
    });
    expect(await post(server.url, bearer(server))).toMatchObject({ status: 200 });
  });

  it("are rejected before they are parsed if they have more values than a message needs", async () => {
    const server = await startHttp();
    const many = `[${"{},".repeat(1_000_000)}{}]`;
    expect(await post(server.url, bearer(server), many)).toMatchObject({
      status: 413,
      body: expect.stringContaining("more than 10000 values"),
    });
    expect(await post(server.url, bearer(server))).toMatchObject({ status: 200 });
  });

  it("time out if the executor is not created, and a late executor is stopped", async () => {
    let stopped = 0;
    let arrive: (executor: LocalCommandLineCodeExecutor) => void = () => {};
    const late = new Promise<LocalCommandLineCodeExecutor>((resolve) => {
      arrive = resolve;
    });
    const server = await startHttp({ createExecutor: () => late, startTimeoutMs: 50, maxSessions: 1 });
    for (const _ of [1, 2]) {
      expect(await post(server.url, bearer(server))).toMatchObject({
        status: 503,
        body: expect.stringContaining("not created within 50 ms"),
      });
    }
    const executor = new LocalCommandLineCodeExecutor();
    executor.stop = async () => void (stopped += 1);
    arrive(executor);
    await expect.poll(() => stopped).toBe(2);
  });
});

describe("startMcpHttpServer", () => {
  it("rejects invalid options, and a port that is in use", async () => {
    const createExecutor = () => new LocalCommandLineCodeExecutor();
    for (const options of [
      { port: -1 },
      { token: "short" },
      { token: "with space in the token" },
      { maxSessions: 0 },
      { sessionIdleMs: 0 },
    ]) {
      await expect(startMcpHttpServer({ createExecutor, ...options })).rejects.toThrow(InvalidInputError);
    }
    const misspelt = Object.assign({ createExecutor }, { allowHosts: ["x"] });
    await expect(startMcpHttpServer(misspelt)).rejects.toThrow('"allowHosts". Did you mean "allowedHosts"?');
    const { url } = await startHttp();
    const port = Number(new URL(url).port);
    await expect(startMcpHttpServer({ createExecutor, port })).rejects.toThrow(BackendUnavailableError);
  });
});

describe("the command line over HTTP", needs("python3"), () => {
  it("prints its URL and, once, its new token; SIGTERM ends its sessions", async () => {
    const started = startCli(["--executor", "local", "--http"]);
    const [, url = ""] = await started.told(/served at (\S+)\n/);
    const [, token = ""] = await started.told(/Bearer (\S+)\n/);
    const { client } = await connectHttp({ url, token });
    const workspace = (await python(client, where)).trim();
    started.child.kill("SIGTERM");
    const { exitCode, stdout, stderr } = await started.outcome;
    expect({ exitCode, stdout }).toEqual({ exitCode: 143, stdout: "" });
    expect(stderr.split(token)).toHaveLength(2);
    expect(existsSync(workspace)).toBe(false);
  });

  it("keeps executors ready for new sessions, and stops them all at the end", async () => {
    const temporary = await mkdtemp(join(tmpdir(), "fenced-test-mcp-"));
    onTestFinished(() => rm(temporary, { recursive: true, force: true }));
    const started = startCli(["--executor", "local", "--http", "--pool", "1"], { TMPDIR: temporary });
    const workspaces = async () => (await readdir(temporary)).filter((name) => name.startsWith("fenced-"));
    // Nobody has connected yet.
    await expect.poll(workspaces, { timeout: 60_000 }).toHaveLength(1);
    const [, url = ""] = await started.told(/served at (\S+)\n/);
    const [, token = ""] = await started.told(/Bearer (\S+)\n/);
    const { client } = await connectHttp({ url, token });
    const used = await python(client, where);
    // Another one is ready, or about to be, for the next client.
    await expect.poll(workspaces, { timeout: 60_000 }).toHaveLength(2);
    expect((await workspaces()).filter((name) => used.includes(name))).toHaveLength(1);
    started.child.kill("SIGTERM");
    expect((await started.outcome).exitCode).toBe(143);
    expect(await workspaces()).toEqual([]);
  });

  it("gives sessions the strongest fence by default", async () => {
    const started = startCli(["--http"], await machine("wasm"));
    await started.told(/^The code runs in an interpreter in WebAssembly\. Docker was passed over/);
    const [, url = ""] = await started.told(/served at (\S+)\n/);
    const [, token = ""] = await started.told(/Bearer (\S+)\n/);
    const { client } = await connectHttp({ url, token });
    expect(await python(client, "import sys; print(sys.platform)")).toBe("emscripten\n");
    started.child.kill("SIGTERM");
    expect((await started.outcome).exitCode).toBe(143);
  });

  it("does not print a token that it was given", async () => {
    const token = "a-token-of-the-users-own";
    const started = startCli(["--executor", "local", "--http"], { FENCED_MCP_TOKEN: token });
    const [, url = ""] = await started.told(/served at (\S+)\n/);
    const { client } = await connectHttp({ url, token });
    expect(await python(client, "print(1)")).toBe("1\n");
    started.child.kill("SIGTERM");
    expect((await started.outcome).stderr).not.toContain(token);
  });
});
