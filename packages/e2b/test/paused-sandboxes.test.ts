import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { directoryStore } from "@fenced/checkpoints";
import type { CheckpointStore } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { Sandbox, SandboxNotFoundError } from "e2b";
import { describe, expect, it } from "vitest";
import type { E2BHandlerOptions, SandboxRequest } from "../src/index.ts";
import { otherKey, startServer, type TestServer } from "./support/start-server.ts";

interface StoringServer extends TestServer {
  readonly store: CheckpointStore;
}

/** A server that keeps checkpoints in a directory. */
async function startStoring(options: Partial<E2BHandlerOptions> = {}): Promise<StoringServer> {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  const store = directoryStore(directory);
  const server = await startServer({ checkpoints: store, ...options });
  return {
    ...server,
    store,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

describe("paused sandboxes", needs("python3", "bash"), () => {
  it("keep their files, and nothing that runs, until they are resumed", async () => {
    await using server = await startStoring();
    const sandbox = await Sandbox.create("base", { ...server.client, envs: { NAME: "kept" }, metadata: { a: "b" } });
    await sandbox.commands.run("mkdir .config; echo one > .config/file; chmod 700 .config; ln -s .config/file link");
    const running = await sandbox.commands.run("sleep 600", { background: true, timeoutMs: 0 });
    const ending = running.wait().catch((error: unknown) => error);
    expect(await sandbox.pause({ keepMemory: true })).toBe(true);
    expect(await ending).toBeInstanceOf(Error);
    expect(server.executors).toEqual({ created: 1, stopped: 1 });
    expect([await sandbox.isRunning(), await sandbox.pause()]).toEqual([false, false]);
    expect(await sandbox.getInfo()).toMatchObject({ state: "paused", metadata: { a: "b" } });
    const list = async (state: "running" | "paused") =>
      (await Sandbox.list({ ...server.client, query: { state: [state] } }).nextItems()).length;
    expect([await list("running"), await list("paused")]).toEqual([0, 1]);
    await expect(sandbox.commands.run("true")).rejects.toThrow(SandboxNotFoundError);
    await expect(sandbox.setTimeout(1000)).rejects.toThrow(/is paused/);

    const again = await Sandbox.connect(sandbox.sandboxId, server.client);
    expect(again.sandboxId).toBe(sandbox.sandboxId);
    const { stdout } = await sandbox.commands.run("cat link; stat -c %a .config; echo $NAME");
    expect(stdout).toBe("one\n700\nkept\n");
    expect((await sandbox.getInfo()).state).toBe("running");
    await sandbox.pause();
    expect(await sandbox.kill()).toBe(true);
    expect(await server.store.list()).toEqual([]);
    await expect(Sandbox.connect(sandbox.sandboxId, server.client)).rejects.toThrow(/not found/);
  });

  it("are paused when their time is up, and resumed by a request, if their clients want that", async () => {
    await using server = await startStoring();
    const create = (autoResume: boolean) =>
      Sandbox.create("base", { ...server.client, timeoutMs: 600_000, lifecycle: { onTimeout: "pause", autoResume } });
    const [waking, sleeping] = await Promise.all([create(true), create(false)]);
    expect((await waking.getInfo()).lifecycle).toEqual({ onTimeout: "pause", autoResume: true });
    await waking.files.write("one.txt", "one");
    for (const sandbox of [waking, sleeping]) {
      await sandbox.setTimeout(0);
      await expect.poll(async () => (await sandbox.getInfo()).state, { timeout: 60_000 }).toBe("paused");
    }
    // Not for those without a token.
    for (const headers of [{}, { "x-access-token": "wrong" }, { "e2b-sandbox-port": "8000" }]) {
      const answer = await fetch(`${server.url}/health`, {
        headers: { "e2b-sandbox-id": waking.sandboxId, ...headers },
      });
      expect(answer.status).toBe(502);
    }
    expect([server.executors.created, (await waking.getInfo()).state]).toEqual([2, "paused"]);
    const [one, other] = await Promise.all([waking.files.read("one.txt"), waking.files.read("one.txt")]);
    expect([one, other]).toEqual(["one", "one"]);
    expect((await waking.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(200_000);
    expect(server.executors.created).toBe(3);
    await expect(sleeping.files.read("one.txt")).rejects.toThrow(/not found/);
    expect((await sleeping.getInfo()).state).toBe("paused");
  });

  it("are resumed once, and only by their owner", async () => {
    await using server = await startStoring();
    const sandbox = await Sandbox.create("base", server.client);
    await sandbox.pause();
    await expect(Sandbox.connect(sandbox.sandboxId, { ...server.client, apiKey: otherKey })).rejects.toThrow(
      /not found/,
    );
    const url = `${server.url}/v2/sandboxes/${sandbox.sandboxId}/connect`;
    const connect = async () =>
      (await fetch(url, { method: "POST", headers: { "x-api-key": server.client.apiKey }, body: "{}" })).status;
    const statuses = await Promise.all([connect(), connect(), connect()]);
    expect(statuses.toSorted((one, other) => one - other)).toEqual([200, 200, 201]);
    expect(server.executors.created).toBe(2);
  });

  it("stay running if they cannot be kept", async () => {
    await using server = await startStoring({ maxKept: 1, maxKeptBytes: 1000 });
    const [one, other] = await Promise.all([
      Sandbox.create("base", server.client),
      Sandbox.create("base", server.client),
    ]);
    await one.files.write("large", "x".repeat(1001));
    await expect(one.pause()).rejects.toThrow(/more than 1000 bytes/);
    expect((await one.commands.run("wc -c < large")).stdout.trim()).toBe("1001");
    await one.files.write("large", "small");
    await one.pause();
    await expect(other.createSnapshot()).rejects.toThrow(/already 1 paused sandboxes and snapshots/);
    // One that was resumed is not paused any more.
    await one.connect();
    expect(await server.store.list()).toEqual([]);
    await one.pause();
    await one.kill();
    await other.createSnapshot();
    expect(await server.store.list()).toHaveLength(1);
  });

  it("stay running if there is no room for all that are paused at the same time", async () => {
    let [taking, go] = [0, (): void => {}];
    const together = new Promise<void>((resolve) => {
      go = resolve;
    });
    const base = ({ restore }: SandboxRequest) => {
      const executor = new LocalCommandLineCodeExecutor({ warm: {}, restore });
      const checkpoint = executor.checkpoint.bind(executor);
      executor.checkpoint = async (options) => {
        // Both know how much room there is before either needs it.
        if ((taking += 1) === 2) go();
        await together;
        return checkpoint(options);
      };
      return executor;
    };
    await using server = await startStoring({ maxKeptBytes: 1000, templates: { base } });
    const both = await Promise.all([Sandbox.create("base", server.client), Sandbox.create("base", server.client)]);
    await Promise.all(both.map((sandbox) => sandbox.files.write("file", "x".repeat(600))));
    const pauses = await Promise.allSettled(both.map((sandbox) => sandbox.pause()));
    const refused = pauses.flatMap((pause) => (pause.status === "rejected" ? [String(pause.reason)] : []));
    expect(refused).toEqual([expect.stringMatching(/more than 400 bytes/)]);
    expect(await server.store.list()).toHaveLength(1);
    const states = await Promise.all(both.map(async (sandbox) => (await sandbox.getInfo()).state));
    expect(states.toSorted()).toEqual(["paused", "running"]);
  });

  it("say in their log what was not kept", async () => {
    await using server = await startStoring();
    const sandbox = await Sandbox.create("base", server.client);
    await sandbox.commands.run("ln -s /etc/passwd outside; mkfifo pipe");
    await sandbox.pause();
    const answer = await fetch(`${server.url}/v2/sandboxes/${sandbox.sandboxId}/logs`, {
      headers: { "x-api-key": server.client.apiKey },
    });
    expect(await answer.json()).toMatchObject({
      logs: [
        { message: "Created", level: "info" },
        { message: "Paused" },
        { message: expect.stringMatching(/Not kept: outside: .* pipe: /), level: "warn" },
      ],
    });
  });

  it("can be killed while they are being paused or resumed", async () => {
    let go: () => void = () => {};
    const waits = { created: false };
    await using server = await startStoring({
      templates: {
        base: async ({ restore }) => {
          if (restore) {
            waits.created = true;
            await new Promise<void>((resolve) => {
              go = resolve;
            });
          }
          return new LocalCommandLineCodeExecutor({ restore });
        },
      },
    });
    const sandbox = await Sandbox.create("base", server.client);
    await sandbox.pause();
    const resuming = sandbox.connect().catch((error: unknown) => error);
    await expect.poll(() => waits.created).toBe(true);
    const killing = sandbox.kill();
    go();
    expect(await killing).toBe(true);
    expect(await resuming).toBeInstanceOf(SandboxNotFoundError);
    expect(await Sandbox.list(server.client).nextItems()).toEqual([]);
    expect(await server.store.list()).toEqual([]);
    const other = await Sandbox.create("base", server.client);
    const pausing = other.pause().catch((error: unknown) => error);
    expect(await other.kill()).toBe(true);
    await pausing;
    await expect.poll(() => server.store.list()).toEqual([]);
  });

  it("need a template that passes their checkpoint on", async () => {
    const errors: unknown[] = [];
    await using server = await startStoring({
      templates: { base: () => new LocalCommandLineCodeExecutor() },
      onError: (error) => void errors.push(error),
    });
    const sandbox = await Sandbox.create("base", server.client);
    await sandbox.files.write("one", "one");
    await sandbox.pause();
    const { endAt } = await sandbox.getInfo();
    await expect(sandbox.connect()).rejects.toThrow(/Internal error/);
    expect(String(errors)).toContain("must pass `restore` on");
    expect(await sandbox.getInfo()).toMatchObject({ state: "paused", endAt });
  });
});

describe("snapshots and forks", needs("python3", "bash"), () => {
  it("are the files of a sandbox at one moment", async () => {
    await using server = await startStoring();
    const sandbox = await Sandbox.create("base", { ...server.client, envs: { NAME: "kept" } });
    await sandbox.files.write("one.txt", "one");
    const snapshot = await sandbox.createSnapshot({ name: "first" });
    expect(snapshot.names).toEqual(["first"]);
    await sandbox.files.write("one.txt", "two");
    const [byId, byName] = await Promise.all([
      Sandbox.create(snapshot.snapshotId, server.client),
      Sandbox.create("first", server.client),
    ]);
    expect([await byId.files.read("one.txt"), await byName.files.read("one.txt")]).toEqual(["one", "one"]);
    expect((await byId.commands.run("echo $NAME")).stdout).toBe("kept\n");
    await byId.pause();
    await byId.connect();
    expect(await byId.files.read("one.txt")).toBe("one");
    const other = { ...server.client, apiKey: otherKey };
    await expect(Sandbox.create(snapshot.snapshotId, other)).rejects.toThrow(/not found/);
    expect(await Sandbox.deleteSnapshot(snapshot.snapshotId, other)).toBe(false);
    expect(await Sandbox.deleteSnapshot(snapshot.snapshotId, server.client)).toBe(true);
    expect(await Sandbox.deleteSnapshot(snapshot.snapshotId, server.client)).toBe(false);
    await expect(Sandbox.create("first", server.client)).rejects.toThrow(/not found/);
  });

  it("are listed by sandbox, name and page, and the last of a name has it", async () => {
    await using server = await startStoring();
    const [one, other] = await Promise.all([
      Sandbox.create("base", server.client),
      Sandbox.create("base", server.client),
    ]);
    const first = await one.createSnapshot({ name: "same" });
    const second = await other.createSnapshot({ name: "same" });
    const third = await one.createSnapshot();
    const ids = async (query: object) =>
      (await Sandbox.listSnapshots({ ...server.client, ...query }).nextItems()).map(({ snapshotId }) => snapshotId);
    expect(new Set(await ids({}))).toEqual(new Set([first, second, third].map(({ snapshotId }) => snapshotId)));
    expect(await ids({ name: "same" })).toEqual([second.snapshotId]);
    expect(await ids({ sandboxId: other.sandboxId })).toEqual([second.snapshotId]);
    const pages = Sandbox.listSnapshots({ ...server.client, limit: 2 });
    const page = await pages.nextItems();
    // What is gone meanwhile moves nothing.
    await Sandbox.deleteSnapshot(page[0]?.snapshotId ?? "", server.client);
    const rest = await pages.nextItems();
    expect([page.length, rest.length, pages.hasNext]).toEqual([2, 1, false]);
    expect(page.map(({ snapshotId }) => snapshotId)).not.toContain(rest[0]?.snapshotId);
    for (const [name, status] of [
      ["a/b", 400],
      ["x".repeat(129), 400],
      ["good-1.0", 201],
    ] as const) {
      const answer = await fetch(`${server.url}/sandboxes/${one.sandboxId}/snapshots`, {
        method: "POST",
        headers: { "x-api-key": server.client.apiKey },
        body: JSON.stringify({ name }),
      });
      expect(answer.status).toBe(status);
    }
  });

  it("fork a sandbox into several, each of which succeeds or fails by itself", async () => {
    await using server = await startStoring({ maxSandboxes: 3 });
    const sandbox = await Sandbox.create("base", server.client);
    await sandbox.files.write("one.txt", "one");
    const forks = await Sandbox.fork(sandbox.sandboxId, { ...server.client, count: 3 });
    const made = forks.filter((fork) => fork instanceof Sandbox);
    expect([forks.length, made.length]).toEqual([3, 2]);
    expect(String(forks.find((fork) => fork instanceof Error))).toMatch(/already 3 sandboxes/);
    for (const fork of made) {
      expect(await fork.files.read("one.txt")).toBe("one");
      await fork.files.write("one.txt", "two");
    }
    expect(await sandbox.files.read("one.txt")).toBe("one");
    expect(await server.store.list()).toEqual([]);
  });

  it("are not left behind by clients that leave while they are being forked", async () => {
    let [forks, go] = [0, (): void => {}];
    const base = async ({ restore }: SandboxRequest) => {
      if (restore && (forks += 1) === 2) {
        await new Promise<void>((resolve) => {
          go = resolve;
        });
      }
      return new LocalCommandLineCodeExecutor({ restore });
    };
    await using server = await startStoring({ templates: { base } });
    const sandbox = await Sandbox.create("base", server.client);
    const list = async () => (await Sandbox.list(server.client).nextItems()).map(({ sandboxId }) => sandboxId);
    const leaving = new AbortController();
    const left = fetch(`${server.url}/sandboxes/${sandbox.sandboxId}/fork`, {
      method: "POST",
      headers: { "x-api-key": server.client.apiKey },
      body: JSON.stringify({ count: 2 }),
      signal: leaving.signal,
    }).catch(() => "left");
    await expect.poll(async () => [forks, (await list()).length]).toEqual([2, 2]);
    leaving.abort();
    expect(await left).toBe("left");
    go();
    await expect.poll(list).toEqual([sandbox.sandboxId]);
    await expect.poll(() => server.store.list()).toEqual([]);
  });

  it("leave nothing in the store when the server ends", async () => {
    const server = await startStoring();
    const sandbox = await Sandbox.create("base", server.client);
    await sandbox.createSnapshot();
    await sandbox.pause();
    const { store } = server;
    expect(await store.list()).toHaveLength(2);
    await server[Symbol.asyncDispose]();
    expect(await store.list()).toEqual([]);
  });
});
