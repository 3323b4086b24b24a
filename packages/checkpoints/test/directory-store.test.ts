import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstat, mkdir, readdir, readFile, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CheckpointError, type CheckpointStore } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { changesBetween, directoryStore } from "../src/index.ts";
import { localExecutor } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

/** The files of a directory and those below it, as relative paths. */
async function filesIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

interface Stored {
  readonly directory: string;
  readonly store: CheckpointStore;
  /** A checkpoint with two files, one of them of two parts. */
  readonly id: string;
}

async function stored(): Promise<Stored> {
  const directory = join(await temporaryDirectory(), "store");
  const store = directoryStore(directory);
  const workDir = await temporaryDirectory();
  await writeFile(join(workDir, "small"), "small");
  await writeFile(join(workDir, "large"), Buffer.alloc(1_500_000, "abc"));
  const { id } = await localExecutor({ workDir }).checkpoint({ store });
  return { directory, store, id };
}

/** Reads everything in a checkpoint. */
async function readAll(store: CheckpointStore, id: string): Promise<void> {
  const saved = await store.open(id);
  for await (const entry of saved.entries()) {
    if (entry.type === "file") for (const part of entry.parts) await saved.content(part);
  }
}

describe("a damaged store", () => {
  const damages: Readonly<Record<string, (file: string) => Promise<void>>> = {
    "is truncated": (file) => truncate(file, 3),
    "has an addition": (file) => writeFile(file, " ", { flag: "a" }),
    "is missing": (file) => rm(file),
  };

  it.each(Object.keys(damages))("is an error, whichever of its files %s", async (kind) => {
    const { directory, store, id } = await stored();
    const files = await filesIn(directory);
    expect(files).toHaveLength(5);
    for (const file of files) {
      const before = await readFile(file);
      await damages[kind]?.(file);
      await expect(readAll(store, id)).rejects.toThrow(CheckpointError);
      await writeFile(file, before);
    }
    await readAll(store, id);
  });

  it("changes nothing in the workspace, whichever of its files has a wrong byte", async () => {
    const { directory, store, id } = await stored();
    const workDir = await temporaryDirectory();
    await writeFile(join(workDir, "small"), "mine");
    for (const file of await filesIn(directory)) {
      const before = await readFile(file);
      const bytes = Buffer.from(before);
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
      await writeFile(file, bytes);
      const executor = localExecutor({ workDir, restore: { store, id } });
      await expect(executor.start()).rejects.toThrow(CheckpointError);
      expect(executor.restored).toBeUndefined();
      expect(await readdir(workDir)).toEqual(["small"]);
      expect(await readFile(join(workDir, "small"), "utf8")).toBe("mine");
      await writeFile(file, before);
    }
    await localExecutor({ workDir, restore: { store, id } }).start();
    expect(await readFile(join(workDir, "small"), "utf8")).toBe("small");
  });

  it("shows what is wrong in the list, and is not swept", async () => {
    const { directory, store, id } = await stored();
    await writeFile(join(directory, "checkpoints", id), "{}");
    expect(await store.list()).toMatchObject([{ id, problem: expect.stringContaining("is damaged") }]);
    const files = await filesIn(directory);
    await expect(store.sweep()).rejects.toThrow(CheckpointError);
    expect(await filesIn(directory)).toEqual(expect.arrayContaining(files));
    await store.delete(id);
    await store.sweep();
    expect(await filesIn(directory)).toEqual([]);
  });

  it("is repaired where a part has lost bytes and is stored again", async () => {
    const { directory, store } = await stored();
    for (const file of await filesIn(join(directory, "parts"))) await truncate(file, 1);
    const workDir = await temporaryDirectory();
    await writeFile(join(workDir, "small"), "small");
    const { id } = await localExecutor({ workDir }).checkpoint({ store });
    const later = localExecutor({ restore: { store, id } });
    expect(Buffer.from(await later.files.read("small")).toString()).toBe("small");
  });
});

describe("directoryStore", () => {
  it("knows no checkpoint that it does not have", async () => {
    const { store } = await stored();
    const executor = localExecutor({ restore: { store, id: "0".repeat(64) } });
    await expect(executor.start()).rejects.toThrow(/There is no checkpoint 0+ in the directory/);
    await expect(store.open("../../etc/passwd")).rejects.toThrow(/is not the id of a checkpoint/);
    await expect(store.delete("../../etc/passwd")).rejects.toThrow(/is not the id of a checkpoint/);
    await store.delete("0".repeat(64));
  });

  it("rejects what is not the path of a directory", () => {
    expect(() => directoryStore("")).toThrow(/needs the path of a directory/);
    expect(() => directoryStore("~/checkpoints")).toThrow(/`~` is not expanded/);
  });

  it("is for this program's user only", async () => {
    const { directory } = await stored();
    expect((await lstat(directory)).mode & 0o077).toBe(0);
    for (const file of await filesIn(directory)) expect((await lstat(file)).mode & 0o077).toBe(0);
  });

  it("lists checkpoints, oldest first, and compares them", async () => {
    const { store, id } = await stored();
    const later = localExecutor({ restore: { store, id } });
    await later.files.write("new/file", "1");
    await later.files.write("small", "other");
    await later.files.remove("large");
    const second = await later.checkpoint({ store });
    expect(await store.list()).toMatchObject([
      { id, files: 2, bytes: 1_500_005, variables: [] },
      { id: second.id, files: 2, bytes: 6, variables: [] },
    ]);
    expect(await changesBetween({ store, id }, { store, id: second.id })).toEqual({
      created: ["new", "new/file"],
      changed: ["small"],
      deleted: ["large"],
    });
    expect(await changesBetween({ store, id }, { store, id })).toEqual({ created: [], changed: [], deleted: [] });
  });
});

describe("sweep", () => {
  it("removes what deleted checkpoints needed, and nothing else", async () => {
    const { directory, store, id } = await stored();
    const later = localExecutor({ restore: { store, id } });
    await later.files.remove("large");
    const second = await later.checkpoint({ store });
    expect(await store.sweep()).toEqual({ removed: 0, bytes: 0, waiting: 0 });
    await store.delete(id);
    // Two parts of the large file, and a list of files.
    expect(await store.sweep()).toMatchObject({ removed: 3, waiting: 0 });
    const last = localExecutor({ restore: { store, id: second.id } });
    expect(Buffer.from(await last.files.read("small")).toString()).toBe("small");
    await store.delete(second.id);
    await store.sweep();
    expect(await filesIn(directory)).toEqual([]);
  });

  it("waits for a checkpoint that is being written, which can use what is to be removed", async () => {
    const { store, id } = await stored();
    const writer = await store.begin();
    const part = await writer.put(Buffer.from("small"));
    await store.delete(id);
    const first = await store.sweep();
    expect(first).toMatchObject({ removed: 0 });
    expect(first.waiting).toBeGreaterThan(0);
    const entry = { type: "file", path: "a", mode: 0o644, modifiedAt: 0, size: 5, parts: [part] } as const;
    const saved = await writer.commit({ entries: [entry], incomplete: [] });
    await writer[Symbol.asyncDispose]();
    await store.sweep();
    const again = localExecutor({ restore: { store, id: saved.id } });
    expect(Buffer.from(await again.files.read("a")).toString()).toBe("small");
  });

  it("does not wait for a dead program, whose checkpoint then fails if it comes back", async () => {
    const { directory, store, id } = await stored();
    const writer = await store.begin({ after: id });
    await store.delete(id);
    expect((await store.sweep()).waiting).toBeGreaterThan(0);
    const old = new Date(Date.now() - 700_000);
    for (const file of await filesIn(join(directory, "writers"))) await utimes(file, old, old);
    for (const file of await filesIn(join(directory, "condemned"))) await utimes(file, old, old);
    expect(await store.sweep()).toMatchObject({ removed: 4, waiting: 0 });
    await expect(writer.commit({ entries: [], incomplete: [] })).rejects.toThrow(CheckpointError);
    expect(await store.list()).toEqual([]);
    await writer[Symbol.asyncDispose]();
    await store.sweep();
    expect(await filesIn(directory)).toEqual([]);
  });

  it("removes unfinished files of killed programs after an hour", async () => {
    const { directory, store } = await stored();
    await mkdir(join(directory, "unfinished"), { recursive: true });
    await writeFile(join(directory, "unfinished/new"), "1");
    await writeFile(join(directory, "unfinished/old"), "1");
    const old = new Date(Date.now() - 3_700_000);
    await utimes(join(directory, "unfinished/old"), old, old);
    await store.sweep();
    expect(await readdir(join(directory, "unfinished"))).toEqual(["new"]);
  });

  it("is safe beside programs that write, restore, delete and are killed", async () => {
    const directory = join(await temporaryDirectory(), "store");
    const store = directoryStore(directory);
    const fixture = join(import.meta.dirname, "fixtures/busy-writer.ts");
    const program = ["--import", "tsx", "--conditions=@fenced/source", fixture, directory];
    // The first one works until it is killed.
    const writers = ["Infinity", "12", "12"].map((rounds, seed) =>
      spawn(process.execPath, [...program, String(seed), rounds], { stdio: ["ignore", "pipe", "inherit"] }),
    );
    const ended = writers.map((writer) => once(writer, "exit"));
    const over = new AbortController();
    void Promise.all(ended.slice(1)).then(() => over.abort());
    await once(writers[0]?.stdout ?? process.stdin, "data");
    setTimeout(() => writers[0]?.kill("SIGKILL"), 700);
    while (!over.signal.aborted) await store.sweep();
    await Promise.all(ended);
    expect(writers.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual(["SIGKILL", 0, 0]);
    // Every checkpoint that is left is whole.
    const left = await store.list();
    expect(left.length).toBeGreaterThan(0);
    for (const { id } of left) await readAll(store, id);
  });
});
