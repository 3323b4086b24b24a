import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { Sandbox } from "e2b";
import { describe, expect, it } from "vitest";
import type { E2BHandlerOptions } from "../src/index.ts";
import { startServer, type TestServer } from "./support/start-server.ts";

/** Servers with the same directory, one after another. */
async function stateDirectory() {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  const state = path.join(directory, "state");
  const start = (options: Partial<E2BHandlerOptions> = {}): Promise<TestServer> =>
    startServer({
      stateDirectory: state,
      templates: {
        base: ({ restore }) => new LocalCommandLineCodeExecutor({ warm: {}, keepAliveMs: 60_000, restore }),
      },
      ...options,
    });
  return {
    state,
    start,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

describe("a server with a state directory", needs("python3", "bash"), () => {
  it("finds the sandboxes of the one before, running and paused, and snapshots", { timeout: 120_000 }, async () => {
    await using before = await stateDirectory();
    const first = await before.start();
    const create = () => Sandbox.create("base", { ...first.client, metadata: { a: "b" }, timeoutMs: 600_000 });
    const [running, paused, expired] = await Promise.all([create(), create(), create()]);
    await running.files.write("one.txt", "one");
    await paused.files.write("two.txt", "two");
    const { snapshotId } = await paused.createSnapshot({ name: "kept" });
    await paused.pause();
    const left = await running.commands.run("sleep 600", { background: true, timeoutMs: 0 });
    const leaving = left.wait().catch((error: unknown) => error);
    const info = await running.getInfo();
    const link = await running.downloadUrl("one.txt");
    await first[Symbol.asyncDispose]();
    expect(await leaving).toBeInstanceOf(Error);
    // Its time is over when the next server starts.
    const file = path.join(before.state, "sandboxes", `${expired.sandboxId}.json`);
    const record: unknown = JSON.parse(await readFile(file, "utf8"));
    await writeFile(file, JSON.stringify(Object.assign({}, record, { endAt: Date.now() - 1000 })));

    await using second = await before.start();
    const url = new URL(link);
    expect(await (await fetch(`${second.url}${url.pathname}${url.search}`)).text()).toBe("one");
    const again = await Sandbox.connect(running.sandboxId, second.client);
    expect(await again.files.read("one.txt")).toBe("one");
    // The same token, also for a client that did not connect anew.
    expect(Reflect.get(again, "envdAccessToken")).toBe(Reflect.get(running, "envdAccessToken"));
    const { endAt, startedAt, metadata } = await again.getInfo();
    expect([endAt, startedAt, metadata]).toEqual([info.endAt, info.startedAt, { a: "b" }]);
    expect(await again.commands.list()).toMatchObject([{ args: ["-l", "-c", "sleep 600"] }]);
    await expect.poll(() => Sandbox.kill(expired.sandboxId, second.client)).toBe(false);
    expect((await Sandbox.getInfo(paused.sandboxId, second.client)).state).toBe("paused");
    const resumed = await Sandbox.connect(paused.sandboxId, second.client);
    expect(await resumed.files.read("two.txt")).toBe("two");
    const copy = await Sandbox.create("kept", second.client);
    expect(await copy.files.read("two.txt")).toBe("two");
    await Promise.all([again, resumed, copy].map((sandbox) => sandbox.kill()));
    await Sandbox.deleteSnapshot(snapshotId, second.client);
    for (const kind of ["sandboxes", "sessions", "snapshots"]) {
      expect(await readdir(path.join(before.state, kind))).toEqual([]);
    }
  });

  it("forgets sandboxes whose place is gone, and keeps others from reading secrets", async () => {
    await using before = await stateDirectory();
    const errors: unknown[] = [];
    await using first = await before.start();
    const sandbox = await Sandbox.create("base", first.client);
    for (const [name, mode] of [
      [`sandboxes/${sandbox.sandboxId}.json`, 0o600],
      [`sessions/${sandbox.sandboxId}.json`, 0o600],
      ["sandboxes", 0o700],
    ] as const) {
      expect((await stat(path.join(before.state, name))).mode & 0o777).toBe(mode);
    }
    const record = await readFile(path.join(before.state, "sandboxes", `${sandbox.sandboxId}.json`));
    await sandbox.kill();
    await first[Symbol.asyncDispose]();
    await writeFile(path.join(before.state, "sandboxes", `${sandbox.sandboxId}.json`), record);
    await using second = await before.start({ onError: (error) => void errors.push(error) });
    await expect.poll(() => Sandbox.list(second.client).nextItems()).toEqual([]);
    expect(String(errors)).toContain(`${sandbox.sandboxId} of an earlier server is gone`);
    await expect.poll(() => readdir(path.join(before.state, "sandboxes"))).toEqual([]);
  });

  it("is the only one with its directory, and needs executors that outlive it", async () => {
    await using before = await stateDirectory();
    await using first = await before.start({ templates: { base: () => new LocalCommandLineCodeExecutor() } });
    await expect(Sandbox.create("base", first.client)).rejects.toThrow(/keepAlive/);
    // A process that runs, and is not this one.
    const lock = path.join(before.state, "server");
    const own = await readFile(lock, "utf8");
    await first[Symbol.asyncDispose]();
    const parent = await readFile(`/proc/${process.ppid}/stat`, "utf8").catch(() => "");
    const started = parent.slice(parent.lastIndexOf(")") + 2).split(" ")[19] ?? "";
    const [, , boot] = own.split(" ");
    await writeFile(lock, [process.ppid, started, boot].join(" ").trim());
    await expect(before.start()).rejects.toThrow(`is used by process ${process.ppid}`);
    // One that died, whose number another process has now.
    await writeFile(lock, `${process.ppid} 1 ${boot ?? ""}`);
    await (await before.start())[Symbol.asyncDispose]();
  });
});
