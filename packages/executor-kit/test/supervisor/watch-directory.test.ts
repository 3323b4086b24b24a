import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, type FileEvent, FileNotFoundError, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectSupervisor, supervisorCommand, watchDirectory } from "../../src/supervisor/index.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { TextSink } from "../support/text-sink.ts";

/** A supervisor and a directory that it watches. */
async function opened() {
  const workspace = path.join(await temporaryDirectory(), "workspace");
  await mkdir(workspace);
  const directory = path.join(await temporaryDirectory(), "session");
  const [program, ...words] = supervisorCommand({ directory, workspace });
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(async () => {
    child.stdin.destroy();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const { supervisor } = await connectSupervisor(child);
  if (supervisor?.watcher === undefined) throw new Error("There is no Python that can watch.");
  const place = { workspace, python: supervisor.watcher, supervisor: () => Promise.resolve(supervisor) };
  const ending = new AbortController();
  const watch = (watched = ".", recursive = true) =>
    watchDirectory(place, { path: watched, recursive, signal: ending.signal });
  const run = (script: string) => supervisor.run({ argv: ["sh", "-c", script], env: {} }, new TextSink());
  return { workspace, watch, run, ending, child };
}

/** Reads events until one satisfies the condition; returns all of them. */
async function until(
  events: AsyncGenerator<FileEvent | undefined, void, void>,
  isLast: (event: FileEvent) => boolean,
): Promise<FileEvent[]> {
  const seen: FileEvent[] = [];
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) return seen;
    if (value) seen.push(value);
    if (value && isLast(value)) return seen;
  }
}

describe.skipIf(process.platform !== "linux")("a watched directory", needs("python3"), () => {
  it("says that events are missing if code makes more than are kept, and goes on", async () => {
    const { workspace, watch, run } = await opened();
    await mkdir(path.join(workspace, "old"));
    const events = watch();
    expect(await events.next()).toEqual({ done: false, value: undefined });
    const kept = Number(await readFile("/proc/sys/fs/inotify/max_queued_events", "utf8"));
    const [watcher = 0] = await watchers(workspace);
    process.kill(watcher, "SIGSTOP");
    await run(`i=0; while [ $i -le ${kept} ]; do : > f$((i % 2)); i=$((i + 1)); done; mkdir new; mv old ..`);
    process.kill(watcher, "SIGCONT");
    const seen = await until(events, ({ type }) => type === "overflow");
    expect(seen.length).toBeLessThanOrEqual(kept + 1);
    expect(seen.at(-1)).toEqual({ type: "overflow", path: "." });
    // It watches what is there now, and nothing that is elsewhere.
    await writeFile(path.join(workspace, "..", "old", "unseen"), "");
    await writeFile(path.join(workspace, "new", "later"), "");
    const rest = await until(events, (event) => event.type === "create" && event.path === "new/later");
    expect(rest.map((event) => event.path)).not.toContain("old/unseen");
    await events.return();
  });

  it("watches no deeper and no more than it can, and says so", async () => {
    const { workspace, watch, run } = await opened();
    const events = watch();
    await events.next();
    await run("mkdir -p d; cd d; i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i + 1)); done");
    await until(events, ({ type }) => type === "overflow");
    await writeFile(path.join(workspace, "file"), "");
    await until(events, (event) => event.path === "file");
    await events.return();
    await expect(watch().next()).rejects.toThrow(/"\." cannot be watched: .*deeper than 256 levels/);
    await expect(watch().next()).rejects.toBeInstanceOf(InvalidInputError);
    expect(await watch(".", false).next()).toEqual({ done: false, value: undefined });
  });

  it("says that events are missing if a directory comes with more than it reports, and watches it", async () => {
    const { workspace, watch, run } = await opened();
    await run(
      `mkdir ../large ../large/sub; python3 -c "import os\nfor i in range(70000): os.mknod('../large/%d' % i)"`,
    );
    const events = watch();
    await events.next();
    await run("mv ../large .");
    const seen = await until(events, ({ type }) => type === "overflow");
    expect(seen).toEqual([
      { type: "create", path: "large" },
      { type: "overflow", path: "." },
    ]);
    await writeFile(path.join(workspace, "large", "sub", "later"), "");
    const rest = await until(events, (event) => event.path === "large/sub/later");
    expect(rest.filter(({ type }) => type === "create").length).toBeLessThan(66_000);
    await events.return();
  });

  it("ends when it is removed, even if the event of that is missing", async () => {
    const { workspace, watch } = await opened();
    await mkdir(path.join(workspace, "dir"));
    const events = watch("dir", false);
    await events.next();
    for (let more = 0; more < 200; more += 1) await writeFile(path.join(workspace, "dir", `${more}`), "");
    await rm(path.join(workspace, "dir"), { recursive: true });
    const seen = await until(events, () => false);
    expect(seen.at(-1)).toEqual({ type: "remove", path: "dir" });
    await expect(watch("dir").next()).rejects.toBeInstanceOf(FileNotFoundError);
  });

  it("ends when it is elsewhere, even if the kernel does not say so", async () => {
    const { workspace, watch, run } = await opened();
    await mkdir(path.join(workspace, "above", "dir"), { recursive: true });
    await mkdir(path.join(workspace, "held"));
    const [moved, held] = [watch("above/dir"), watch("held")];
    await Promise.all([moved.next(), held.next()]);
    const fifo = path.join(workspace, "ends");
    const script = `mkfifo ${fifo}; cd held; rmdir ${workspace}/held; mv ${workspace}/above ${workspace}/away; cat ${fifo}`;
    const ended = run(script);
    expect(await until(moved, () => false)).toEqual([{ type: "remove", path: "above/dir" }]);
    expect((await until(held, () => false)).at(-1)).toEqual({ type: "remove", path: "held" });
    await writeFile(fifo, "");
    await ended;
  });

  it("follows no link that takes a directory's place", async () => {
    const { workspace, watch } = await opened();
    const outside = await temporaryDirectory();
    await mkdir(path.join(workspace, "dir"));
    const events = watch();
    await events.next();
    await rename(path.join(workspace, "dir"), path.join(workspace, "away"));
    await symlink(outside, path.join(workspace, "dir"));
    await writeFile(path.join(outside, "secret"), "");
    await writeFile(path.join(workspace, "away", "seen"), "");
    const seen = await until(events, (event) => event.path === "away/seen");
    expect(seen.map((event) => event.path)).not.toContain("dir/secret");
    await events.return();
  });

  it("ends with its signal, and fails if code ends or forges it", async () => {
    const { workspace, watch, ending } = await opened();
    const forged = watch();
    await forged.next();
    const [writer] = await watchers(workspace);
    await writeFile(`/proc/${writer}/fd/1`, "create ../outside\0");
    await expect(until(forged, () => false)).rejects.toBeInstanceOf(BackendUnavailableError);
    const killed = watch();
    await killed.next();
    for (const pid of await watchers(workspace)) process.kill(pid, "SIGKILL");
    await expect(until(killed, () => false)).rejects.toBeInstanceOf(BackendUnavailableError);
    const aborted = watch();
    await aborted.next();
    const rest = until(aborted, () => false);
    ending.abort();
    expect(await rest).toEqual([]);
    expect(await watchers(workspace)).toEqual([]);
  });

  it("ends with its reader and with its supervisor", async () => {
    const { workspace, watch, child } = await opened();
    const left = watch();
    await left.next();
    await left.return();
    expect(await watchers(workspace)).toEqual([]);
    const lost = watch();
    await lost.next();
    const failure = until(lost, () => false).catch((error: unknown) => error);
    child.stdin.end();
    await once(child, "exit");
    expect(await failure).toBeInstanceOf(BackendUnavailableError);
    expect(await watchers(workspace)).toEqual([]);
  });
});

/** The ids of the programs that watch a directory of a workspace. */
async function watchers(workspace: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir("/proc")) {
    const words = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
    if (/^[0-9]+$/.test(name) && words.includes(`\0${workspace}\0watch\0`)) found.push(Number(name));
  }
  return found;
}
