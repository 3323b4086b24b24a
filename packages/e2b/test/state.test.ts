import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Sandbox as CodeInterpreter } from "@e2b/code-interpreter";
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

  it("goes on with clients' programs, and ends those that the one before needed itself", async () => {
    await using before = await stateDirectory();
    const first = await before.start();
    const sandbox = await CodeInterpreter.create("base", { ...first.client, timeoutMs: 600_000 });
    await sandbox.files.write("one.txt", "one");
    await sandbox.runCode("1");
    const cat = await sandbox.commands.run("cat", { background: true, stdin: true, timeoutMs: 0 });
    cat.wait().catch(() => {});
    const own = `for p in $(pgrep -f '[T]he files of a sandbox|[R]uns the cells of one'); do [ /proc/$p/cwd -ef . ] && echo own; done; true`;
    expect((await sandbox.commands.run(own)).stdout).toBe("own\nown\n");
    await first[Symbol.asyncDispose]();

    await using second = await before.start();
    const again = await CodeInterpreter.connect(sandbox.sandboxId, second.client);
    await expect.poll(async () => (await again.commands.run(own)).stdout).toBe("");
    let said = "";
    const connected = await again.commands.connect(cat.pid, { onStdout: (text) => void (said += text) });
    await again.commands.sendStdin(cat.pid, "word\n");
    await expect.poll(() => said).toBe("word\n");
    await connected.kill();
    expect(await again.files.read("one.txt")).toBe("one");
    expect((await again.runCode("2")).text).toBe("2");
    await again.kill();
  });

  it("names files that it cannot read, and ends what no file names", async () => {
    await using before = await stateDirectory();
    const errors: unknown[] = [];
    const first = await before.start();
    const [kept, abandoned] = await Promise.all([
      Sandbox.create("base", first.client),
      Sandbox.create("base", first.client),
    ]);
    const { snapshotId } = await kept.createSnapshot();
    await first[Symbol.asyncDispose]();
    const fileOf = (id: string): string => path.join(before.state, "sandboxes", `${id}.json`);
    await rm(fileOf(abandoned.sandboxId));
    const record: unknown = JSON.parse(await readFile(fileOf(kept.sandboxId), "utf8"));
    // No `Date` can be that late.
    await writeFile(fileOf("broken"), JSON.stringify(Object.assign({}, record, { endAt: 1e17 })));
    await writeFile(`${fileOf("half")}.new`, "{");
    await using second = await before.start({ onError: (error) => void errors.push(error) });
    expect(errors.map(String)).toEqual([expect.stringContaining(`${fileOf("broken")} cannot be read`)]);
    expect((await Sandbox.list(second.client).nextItems()).map(({ sandboxId }) => sandboxId)).toEqual([kept.sandboxId]);
    await expect.poll(() => readdir(path.join(before.state, "sessions"))).toEqual([`${kept.sandboxId}.json`]);
    expect((await readdir(path.join(before.state, "sandboxes"))).toSorted()).toEqual(
      ["broken.json", `${kept.sandboxId}.json`].toSorted(),
    );
    await Sandbox.kill(kept.sandboxId, second.client);
    expect(await Sandbox.deleteSnapshot(snapshotId, second.client)).toBe(true);
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
    const locks = async () => (await readdir(before.state)).filter((name) => name.startsWith("server"));
    await using first = await before.start({ templates: { base: () => new LocalCommandLineCodeExecutor() } });
    await expect(Sandbox.create("base", first.client)).rejects.toThrow(/keepAlive/);
    await expect(before.start()).rejects.toThrow(`is used by process ${process.pid}`);
    // A process that runs, and is not this one.
    const [own = ""] = await locks();
    await first[Symbol.asyncDispose]();
    expect(await locks()).toEqual([]);
    const parent = await readFile(`/proc/${process.ppid}/stat`, "utf8").catch(() => "");
    const started = parent.slice(parent.lastIndexOf(")") + 2).split(" ")[19];
    const boot = own.split("-").slice(3).join("-");
    const name = ["server", process.ppid, ...(started === undefined ? [] : [started, boot])].join("-");
    await writeFile(path.join(before.state, name), "");
    await expect(before.start()).rejects.toThrow(`is used by process ${process.ppid}`);
    await rm(path.join(before.state, name));
    // One that died, whose number another process has now; only one of two servers can follow it.
    await writeFile(path.join(before.state, `server-${process.ppid}-1-${boot}`), "");
    const both = await Promise.allSettled([before.start(), before.start()]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(await locks()).toEqual([own]);
    for (const each of both) if (each.status === "fulfilled") await each.value[Symbol.asyncDispose]();
  });
});
