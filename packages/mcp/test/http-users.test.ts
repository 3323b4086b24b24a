import { getEventListeners, once } from "node:events";
import { existsSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidInputError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { ExecutorPool } from "@fenced/pool";
import { needs } from "@fenced/test-support";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createMcpHandler, type McpHandler, type McpHandlerOptions } from "../src/index.ts";
import { call, python, textOf } from "./support/call.ts";
import { connectHttp } from "./support/start.ts";

interface User {
  readonly name: string;
}

const users: Record<string, User> = { "token-of-ann": { name: "ann" }, "token-of-bob": { name: "bob" } };
const where = "import os\nprint(os.getcwd())";
const accept = "application/json, text/event-stream";
const message = (id: number, method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });
const initialize = message(1, "initialize", {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "test", version: "1" },
});

interface Service {
  readonly handler: McpHandler;
  readonly url: string;
}

/** A service in Hono with a handler. Each request's user is a new object, as from a database. */
async function startService(options: Partial<McpHandlerOptions<User>> = {}): Promise<Service> {
  const handler = createMcpHandler<User>({
    createExecutor: () => new LocalCommandLineCodeExecutor(),
    authenticate: async ({ headers }) => {
      const user = users[headers.get("authorization")?.slice("Bearer ".length) ?? ""];
      return user === undefined ? undefined : { ...user };
    },
    ...options,
  });
  const app = new Hono();
  app.all("/mcp", (context) => handler(context.req.raw));
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  onTestFinished(async () => {
    await handler.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  });
  if (!server.listening) await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server listens on no port.");
  return { handler, url: `http://127.0.0.1:${address.port}/mcp` };
}

const connect = ({ url }: Service, name: string) => connectHttp({ url, token: `token-of-${name}` });

/** Sends requests that no well-behaved client sends. */
async function send({ url }: Service, headers: Record<string, string>, { method = "POST", body = initialize } = {}) {
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json", accept, ...headers },
    ...(method === "POST" ? { body } : {}),
  });
  const authenticate = response.headers.get("www-authenticate");
  const sessionId = response.headers.get("mcp-session-id") ?? "";
  return { status: response.status, authenticate, sessionId, body: await response.text() };
}

const as = (name: string) => ({ authorization: `Bearer token-of-${name}` });

it("takes no more memory for a body that arrives one byte at a time", async () => {
  const handler = createMcpHandler<User>({
    createExecutor: () => new LocalCommandLineCodeExecutor(),
    authenticate: () => ({ name: "ann" }),
  });
  onTestFinished(() => handler.close());
  const bytes = new TextEncoder().encode(initialize);
  // The same memory each time: only a body that keeps no piece can be read.
  const piece = new Uint8Array(1);
  let at = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        piece.set(bytes.subarray(at, at + 1));
        at += 1;
        if (at > bytes.length) controller.close();
        else controller.enqueue(piece);
      },
    },
    { highWaterMark: 0 },
  );
  const headers = { accept, "content-type": "application/json" };
  const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body, duplex: "half" });
  const response = await handler(request);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("serverInfo");
});

describe("a handler in a custom server", () => {
  it("rejects unknown users", async () => {
    const createExecutor = vi.fn<McpHandlerOptions<User>["createExecutor"]>(() => new LocalCommandLineCodeExecutor());
    const service = await startService({ createExecutor });
    for (const headers of [{}, as("eve"), { authorization: "token-of-ann" }]) {
      const refused = await send(service, headers);
      expect(refused).toMatchObject({ status: 401, authenticate: "Bearer" });
      expect(JSON.parse(refused.body)).toMatchObject({ jsonrpc: "2.0", error: { code: -32_000 }, id: null });
    }
    expect(createExecutor).not.toHaveBeenCalled();
    const { url } = await startService({ authenticate: () => null });
    expect(await send({ ...service, url }, as("ann"))).toMatchObject({ status: 401 });
  });

  it("keeps users out of each other's sessions", async () => {
    const service = await startService();
    const { sessionId } = await send(service, as("ann"));
    const ofHers = (name: string) => ({ ...as(name), "mcp-session-id": sessionId });
    const list = { body: message(2, "tools/list") };
    const foreign = [list, { method: "GET" }, { method: "DELETE" }];
    for (const request of foreign) {
      expect(await send(service, ofHers("bob"), request)).toMatchObject({
        status: 404,
        body: expect.stringContaining("Session not found"),
      });
    }
    expect(await send(service, ofHers("ann"), list)).toMatchObject({
      status: 200,
      body: expect.stringContaining("run_code"),
    });
    expect(await send(service, ofHers("ann"), { method: "DELETE" })).toMatchObject({ status: 200 });
    expect(await send(service, ofHers("ann"), list)).toMatchObject({ status: 404 });
  });

  it("compares all properties of users, unless sameUser compares them", async () => {
    let requests = 0;
    const changing = {
      authenticate: () => ({ name: "ann", expires: (requests += 1) }),
      createExecutor: () => new LocalCommandLineCodeExecutor(),
    };
    const list = { body: message(2, "tools/list") };
    const strict = await startService(changing);
    const first = await send(strict, {});
    expect(await send(strict, { "mcp-session-id": first.sessionId }, list)).toMatchObject({ status: 404 });
    const byName = await startService({ ...changing, sameUser: (one, other) => one.name === other.name });
    const second = await send(byName, {});
    expect(await send(byName, { "mcp-session-id": second.sessionId }, list)).toMatchObject({ status: 200 });
  });

  it("accepts only the configured hosts and origins", async () => {
    const service = await startService({ allowedHosts: ["tools.example"], allowedOrigins: ["https://app.example"] });
    const statusOf = (headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const type = { "content-type": "application/json", accept };
        const sent = httpRequest(service.url, { method: "POST", headers: { ...type, ...as("ann"), ...headers } });
        sent.once("response", (response) => resolve(response.resume().statusCode)).once("error", reject);
        sent.end(initialize);
      });
    expect(await statusOf({ host: "tools.example" })).toBe(200);
    expect(await statusOf({ host: "evil.example" })).toBe(403);
    expect(await statusOf({ origin: "https://app.example" })).toBe(200);
    expect(await statusOf({ origin: "https://tools.example" })).toBe(200);
    expect(await statusOf({ origin: "http://app.example" })).toBe(403);
    expect(await statusOf({ origin: "https://app.example.evil.example" })).toBe(403);
  });

  it("rejects a request that is larger than the limit", async () => {
    const service = await startService({ maxRequestBytes: 1000 });
    const large = { body: message(1, "x".repeat(1000)) };
    expect(await send(service, as("ann"), large)).toMatchObject({
      status: 413,
      body: expect.stringContaining("larger than 1000 bytes"),
    });
    expect(await send(service, as("ann"))).toMatchObject({ status: 200 });
  });

  it("counts the unfinished requests of each user alone", async () => {
    const service = await startService({ maxRequestBytes: 100_000 });
    const unfinished = Array.from({ length: 6 }, () => {
      const headers = { "content-type": "application/json", accept, "content-length": "100000", ...as("ann") };
      const sent = httpRequest(service.url, { method: "POST", headers }).on("error", () => {});
      sent.write("x".repeat(90_000));
      onTestFinished(() => void sent.destroy());
      return once(sent, "response");
    });
    await Promise.race(unfinished);
    const large = { body: initialize + " ".repeat(90_000) };
    expect(await send(service, as("ann"), large)).toMatchObject({ status: 429 });
    expect(await send(service, as("bob"), large)).toMatchObject({ status: 200 });
  });

  it("answers with status 500 if a callback throws, without the error's message", async () => {
    const told: unknown[] = [];
    const onError = (error: unknown) => told.push(error);
    const failing = (): never => {
      throw new Error("secret: the database is down");
    };
    for (const options of [{ authenticate: failing }, { createExecutor: failing }]) {
      const { status, body } = await send(await startService({ ...options, onError }), as("ann"));
      expect({ status, told: body.includes("secret") }).toEqual({ status: 500, told: false });
    }
    expect(told).toHaveLength(2);
  });

  it("rejects invalid options", () => {
    const options = { createExecutor: () => new LocalCommandLineCodeExecutor(), authenticate: () => "ann" };
    for (const wrong of [
      { maxRequestBytes: 0 },
      { maxSessionsPerUser: 0 },
      { allowedOrigins: ["app.example"] },
      { maxSessions: 0.5 },
    ]) {
      expect(() => createMcpHandler({ ...options, ...wrong })).toThrow(InvalidInputError);
    }
    expect(() => createMcpHandler(Object.assign({ ...options }, { token: "a-token" }))).toThrow('"token"');
    // @ts-expect-error -- plain JavaScript may leave it out.
    expect(() => createMcpHandler({ createExecutor: options.createExecutor })).toThrow("authenticate");
  });
});

describe("sessions of several users", needs("python3"), () => {
  it("have their own executors, created for their user", async () => {
    const made: [name: string, sessionId: string, agent: string | null][] = [];
    const service = await startService({
      createExecutor: ({ sessionId, request, user }) => {
        made.push([user.name, sessionId, request.headers.get("authorization")]);
        return new LocalCommandLineCodeExecutor();
      },
    });
    const [ann, bob] = [await connect(service, "ann"), await connect(service, "bob")];
    expect(made).toEqual([
      ["ann", ann.transport.sessionId, "Bearer token-of-ann"],
      ["bob", bob.transport.sessionId, "Bearer token-of-bob"],
    ]);
    const workspaces = await Promise.all([python(ann.client, where), python(bob.client, where)]);
    const [hers = "", his = ""] = workspaces.map((path) => path.trim());
    expect(hers).not.toBe(his);
    await call(ann.client, "write_file", { path: "secret", content: "s" });
    expect(textOf(await call(bob.client, "list_files"))).toBe("There are no files.");
    await ann.transport.terminateSession();
    // At once: terminateSession() returns when the executor has stopped.
    expect([existsSync(hers), existsSync(his)]).toEqual([false, true]);
  });

  it("leave no listener on the signal of their start", async () => {
    const signals: AbortSignal[] = [];
    const service = await startService({
      createExecutor: ({ signal }) => {
        signals.push(signal);
        return new LocalCommandLineCodeExecutor();
      },
    });
    await connect(service, "ann");
    expect(signals.map((signal) => getEventListeners(signal, "abort"))).toEqual([[]]);
  });

  it("make room when their client has closed, and end when they are idle", async () => {
    const service = await startService({ maxSessions: 1, sessionIdleMs: 4000 });
    const ann = await connect(service, "ann");
    const hers = (await python(ann.client, where)).trim();
    // Her open stream keeps the session alive for longer than it may be idle.
    await sleep(6000);
    expect(await send(service, as("bob"))).toMatchObject({ status: 503 });
    await ann.client.close();
    const bob = await vi.waitFor(() => connect(service, "bob"), { timeout: 60_000 });
    expect(existsSync(hers)).toBe(false);
    const his = (await python(bob.client, where)).trim();
    await bob.client.close();
    await expect.poll(() => existsSync(his), { timeout: 60_000 }).toBe(false);
  });

  it("are limited per user, without keeping other users out", async () => {
    const service = await startService({ maxSessions: 3, maxSessionsPerUser: 1 });
    const ann = await connect(service, "ann");
    const hers = (await python(ann.client, where)).trim();
    expect(await send(service, as("ann"))).toMatchObject({
      status: 429,
      body: expect.stringContaining("This user has reached the limit of sessions"),
    });
    const bob = await connect(service, "bob");
    const his = (await python(bob.client, where)).trim();
    // Her old session makes room for her next one; his, which is just as idle, stays.
    await Promise.all([ann.client.close(), bob.client.close()]);
    await vi.waitFor(() => connect(service, "ann"), { timeout: 60_000 });
    expect([existsSync(hers), existsSync(his)]).toEqual([false, true]);
  });

  it("of one user never take the places of the others", async () => {
    const service = await startService({ maxSessions: 3 });
    const bob = await connect(service, "bob");
    const his = (await python(bob.client, where)).trim();
    await bob.client.close();
    // Nobody has more than she: her own oldest sessions make room.
    for (let started = 0; started < 5; started += 1) {
      expect(await send(service, as("ann"))).toMatchObject({ status: 200 });
    }
    await Promise.all([1, 2, 3].map(() => send(service, as("ann"))));
    expect(existsSync(his)).toBe(true);
  });

  it("can come from a pool, are not shared, and are awaited only while the client stays", async () => {
    const pool = new ExecutorPool({ create: () => new LocalCommandLineCodeExecutor(), min: 1, max: 1 });
    onTestFinished(() => pool.drain({ graceMs: 0 }));
    await pool.start();
    const service = await startService({
      createExecutor: async ({ signal }) => (await pool.acquire({ signal })).executor,
      startTimeoutMs: 6_000,
    });
    const ann = await connect(service, "ann");
    const hers = (await python(ann.client, where)).trim();
    expect(pool.counts).toMatchObject({ leased: 1, ready: 0 });
    const leaving = new AbortController();
    const left = fetch(service.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept, ...as("bob") },
      body: initialize,
      signal: leaving.signal,
    }).catch(() => "left");
    await vi.waitFor(() => expect(pool.counts.waiting).toBe(1), { timeout: 60_000 });
    leaving.abort();
    expect(await left).toBe("left");
    await vi.waitFor(() => expect(pool.counts.waiting).toBe(0), { timeout: 60_000 });
    expect(await send(service, as("bob"))).toMatchObject({ status: 503 });
    await ann.transport.terminateSession();
    expect(existsSync(hers)).toBe(false);
    const bob = await vi.waitFor(() => connect(service, "bob"), { timeout: 60_000 });
    expect((await python(bob.client, where)).trim()).not.toBe(hers);
  });

  it("all end with the handler, including running code", async () => {
    const service = await startService();
    const [ann, bob] = [await connect(service, "ann"), await connect(service, "bob")];
    const hers = (await python(ann.client, where)).trim();
    const running = python(bob.client, "import os, time\nopen('here', 'w').close()\ntime.sleep(600)").catch(
      () => "ended",
    );
    await vi.waitFor(async () => expect(textOf(await call(bob.client, "list_files"))).toContain("here"), {
      timeout: 60_000,
    });
    await Promise.all([service.handler.close(), service.handler[Symbol.asyncDispose]()]);
    expect(existsSync(hers)).toBe(false);
    expect(await send(service, as("ann"))).toMatchObject({
      status: 503,
      body: expect.stringContaining("shutting down"),
    });
    await bob.client.close();
    expect(await running).toBe("ended");
  });
});
