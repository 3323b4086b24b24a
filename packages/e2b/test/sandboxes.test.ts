import { type IncomingMessage, request } from "node:http";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { Sandbox, SandboxNotFoundError, TimeoutError } from "e2b";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { apiKey, otherKey, startServer } from "./support/start-server.ts";

describe("sandboxes", needs("python3", "bash"), () => {
  it("are created, found, listed by metadata and page, and killed", async () => {
    await using server = await startServer();
    const [one, two, three] = await Promise.all(
      ["a b", "c", "c"].map((name) => Sandbox.create("base", { ...server.client, metadata: { name } })),
    );
    expect(await one?.isRunning()).toBe(true);
    expect(await one?.getInfo()).toMatchObject({ templateId: "base", state: "running", metadata: { name: "a b" } });
    expect((await one?.getInfo())?.memoryMB).toBeGreaterThan(0);
    const list = async (metadata?: Record<string, string>) =>
      (await Sandbox.list({ ...server.client, ...(metadata && { query: { metadata } }) }).nextItems()).map(
        ({ sandboxId }) => sandboxId,
      );
    expect(await list({ name: "a b" })).toEqual([one?.sandboxId]);
    expect(new Set(await list())).toEqual(new Set([one, two, three].map((each) => each?.sandboxId)));
    const pages = Sandbox.list({ ...server.client, limit: 2 });
    expect([(await pages.nextItems()).length, pages.hasNext]).toEqual([2, true]);
    expect([(await pages.nextItems()).length, pages.hasNext]).toEqual([1, false]);
    expect([await one?.kill(), await one?.kill(), await one?.isRunning()]).toEqual([true, false, false]);
    await expect(Sandbox.connect(one?.sandboxId ?? "", server.client)).rejects.toThrow(/not found/);
    expect(server.executors).toEqual({ created: 3, stopped: 1 });
  });

  it("can be connected to again, with their processes and files", async () => {
    await using server = await startServer();
    const sandbox = await Sandbox.create("base", server.client);
    await sandbox.files.write("kept.txt", "kept");
    const command = await sandbox.commands.run("read line; echo got $line", { background: true, stdin: true });
    const again = await Sandbox.connect(sandbox.sandboxId, server.client);
    expect(await again.files.read("kept.txt")).toBe("kept");
    const connected = await again.commands.connect(command.pid);
    await again.commands.sendStdin(command.pid, "word\n");
    expect(await connected.wait()).toMatchObject({ exitCode: 0, stdout: "got word\n" });
  });

  it("end when their time is up, which can be moved", async () => {
    await using server = await startServer();
    const sandbox = await Sandbox.create("base", { ...server.client, timeoutMs: 600_000 });
    const { endAt } = await sandbox.getInfo();
    await sandbox.setTimeout(1_200_000);
    expect((await sandbox.getInfo()).endAt.getTime() - endAt.getTime()).toBeGreaterThan(500_000);
    const running = await sandbox.commands.run("sleep 600", { background: true, timeoutMs: 0 });
    await sandbox.setTimeout(0);
    await expect(running.wait()).rejects.toBeInstanceOf(TimeoutError);
    await expect.poll(() => server.executors.stopped).toBe(1);
    await expect(Sandbox.create("base", { ...server.client, timeoutMs: 86_401_000 })).rejects.toThrow(
      /Timeout cannot be greater than 24 hours/,
    );
    // A timer for longer would end the sandbox too early.
    await expect(startServer({ maxTimeoutMs: 2 ** 31 })).rejects.toThrow(/maxTimeoutMs/);
  });

  it("are invisible to other keys, and need one", async () => {
    await using server = await startServer();
    const sandbox = await Sandbox.create("base", server.client);
    const other = { ...server.client, apiKey: otherKey };
    expect(await Sandbox.list(other).nextItems()).toEqual([]);
    await expect(Sandbox.connect(sandbox.sandboxId, other)).rejects.toThrow(/not found/);
    expect(await Sandbox.kill(sandbox.sandboxId, other)).toBe(false);
    expect(await sandbox.isRunning()).toBe(true);
    await expect(Sandbox.create("base", { ...server.client, apiKey: `e2b_${"2".repeat(40)}` })).rejects.toThrow(
      /The API key is missing or not valid/,
    );
    // A client that knows the id still needs the sandbox's token.
    const headers = { "e2b-sandbox-id": sandbox.sandboxId, "content-type": "application/json" };
    for (const token of [{}, { "x-access-token": apiKey }]) {
      const url = `${server.url}/process.Process/List`;
      const answer = await fetch(url, { method: "POST", headers: { ...headers, ...token }, body: "{}" });
      expect([answer.status, await answer.json()]).toMatchObject([401, { code: "unauthenticated" }]);
    }
  });

  it.each(["short", "e2b_0123456789 abcdef"])("need a key that cannot be guessed: %s", async (key) => {
    await expect(startServer({ apiKeys: [key] })).rejects.toThrow(/at least 16 visible ASCII characters/);
  });

  it("are limited in number, and unknown templates are named", async () => {
    await using server = await startServer({ maxSandboxes: 1 });
    const post = (body: object) =>
      fetch(`${server.url}/v2/sandboxes`, {
        method: "POST",
        headers: { "x-api-key": apiKey },
        body: JSON.stringify(body),
      });
    await Sandbox.create("base", server.client);
    const refused = await post({ templateID: "base" });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await refused.json()).toMatchObject({ message: expect.stringContaining("1 sandboxes, the most") });
    const unknown = await post({ templateID: "moon" });
    expect([unknown.status, await unknown.json()]).toEqual([
      404,
      { code: 404, message: "template 'moon' not found; this server has base" },
    ]);
    const wrong = await post({ templateID: 3 });
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { code: 400 }]);
    await expect(Sandbox.create("base", { ...server.client, lifecycle: { onTimeout: "pause" } })).rejects.toThrow(
      /no store of checkpoints/,
    );
  });

  it.each([
    [{ iam: { tokens: { one: { audience: "a" } } } }, /no identity tokens/],
    [{ autoPause: true, autoResume: { enabled: true } }, /cannot pause/],
    [{ volumeMounts: [{ name: "v", path: "/v" }] }, /no volumes/],
  ])("are refused if they cannot be as wanted: %j", async (wanted, message) => {
    await using server = await startServer();
    const answer = await fetch(`${server.url}/v2/sandboxes`, {
      method: "POST",
      headers: { "x-api-key": apiKey },
      body: JSON.stringify({ templateID: "base", ...wanted }),
    });
    expect([answer.status, await answer.json()]).toEqual([501, { code: 501, message: expect.stringMatching(message) }]);
    expect(server.executors.created).toBe(0);
  });

  it("are reached by host names of a domain", async () => {
    await using server = await startServer({ domain: "sandboxes.example:8443" });
    const made = await fetch(`${server.url}/v2/sandboxes`, {
      method: "POST",
      headers: { "x-api-key": apiKey },
      body: '{"templateID": "base"}',
    });
    const { sandboxID: id, domain } = z.object({ sandboxID: z.string(), domain: z.string() }).parse(await made.json());
    expect(domain).toBe("sandboxes.example:8443");
    const ask = async (host: string): Promise<number | undefined> => {
      const answer = await new Promise<IncomingMessage>((resolve) => {
        request(`${server.url}/health`, { headers: { host } }, resolve).end();
      });
      return answer.resume().statusCode;
    };
    expect(await ask(`49983-${id}.${domain}`)).toBe(204);
    expect(await ask(`49983-inone.${domain}`)).toBe(502);
    expect(await ask(`8000-${id}.${domain}`)).toBe(502);
    expect(await ask(`api.${domain}`)).toBe(204);
  });

  it("end with the handler, and break their streams when they are lost", async () => {
    const server = await startServer();
    const sandbox = await Sandbox.create("base", server.client);
    const running = await sandbox.commands.run("sleep 600", { background: true, timeoutMs: 0 });
    const ending = running.wait().catch((error: unknown) => error);
    await server[Symbol.asyncDispose]();
    expect(await ending).toBeInstanceOf(Error);
    expect(server.executors).toEqual({ created: 1, stopped: 1 });
  });

  it("are not left behind by clients that leave, or a server that closes, during their creation", async () => {
    let [asked, go] = [0, (): void => {}];
    const executors: LocalCommandLineCodeExecutor[] = [];
    const server = await startServer({
      templates: {
        base: async () => {
          asked += 1;
          await new Promise<void>((resolve) => {
            go = resolve;
          });
          const executor = new LocalCommandLineCodeExecutor();
          executors.push(executor);
          return executor;
        },
      },
    });
    const list = () => Sandbox.list(server.client).nextItems();
    const leaving = new AbortController();
    const init = { method: "POST", headers: { "x-api-key": apiKey }, body: '{"templateID": "base"}' };
    const left = fetch(`${server.url}/v2/sandboxes`, { ...init, signal: leaving.signal }).catch(() => "left");
    await expect.poll(() => asked).toBe(1);
    leaving.abort();
    await left;
    go();
    const closed = fetch(`${server.url}/v2/sandboxes`, init);
    await expect.poll(() => asked).toBe(2);
    expect(await list()).toEqual([]);
    const closing = server[Symbol.asyncDispose]();
    go();
    expect((await closed.catch(() => ({ status: 500 }))).status).toBeGreaterThanOrEqual(400);
    await closing;
    for (const executor of executors) {
      await expect(executor.executeCodeBlocks([{ language: "sh", code: "true" }])).rejects.toThrow(/stopped|dispose/);
    }
  });

  it("tell the operator what clients only know as an internal error", async () => {
    const errors: unknown[] = [];
    const problem = new Error("broken backend");
    await using server = await startServer({
      templates: {
        base: () => {
          const executor = new LocalCommandLineCodeExecutor();
          const start = async (): Promise<never> => {
            throw problem;
          };
          if (executor.processes) Object.assign(executor.processes, { start });
          return executor;
        },
      },
      onError: (error) => void errors.push(error),
    });
    const sandbox = await Sandbox.create("base", server.client);
    await expect(sandbox.commands.run("true")).rejects.toThrow(/Internal error; see the server's log/);
    await expect(sandbox.files.exists("x")).rejects.toThrow(/Internal error/);
    await expect(sandbox.files.read("x")).rejects.toThrow(/Internal error/);
    expect(errors).toEqual([problem, problem, problem]);
  });

  it("answer what only the cloud has with a sentence", async () => {
    await using server = await startServer();
    const sandbox = await Sandbox.create("base", server.client);
    await expect(sandbox.pause()).rejects.toThrow(/has no store of checkpoints/);
    for (const [path, message] of [
      ["/v3/templates", /--template/],
      ["/volumes", /no volumes/],
      ["/secrets", /no secrets/],
      ["/teams", /no teams/],
    ] as const) {
      const answer = await fetch(`${server.url}${path}`, { method: "POST", headers: { "x-api-key": apiKey } });
      expect([answer.status, await answer.json()]).toEqual([
        501,
        { code: 501, message: expect.stringMatching(message) },
      ]);
    }
    await expect(sandbox.getMetrics()).resolves.toEqual([expect.objectContaining({ memTotal: expect.any(Number) })]);
    expect(await Sandbox.connect("inone", server.client).catch((error: unknown) => error)).toBeInstanceOf(
      SandboxNotFoundError,
    );
  });
});
