import { execFileSync } from "node:child_process";
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import type { CheckpointReceipt, CheckpointStore } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { directoryStore } from "../src/index.ts";
import { countingStore } from "./support/counting-store.ts";
import { localExecutor } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

interface Places {
  readonly store: CheckpointStore;
  readonly workDir: string;
  /** Starts an executor with a checkpoint; returns its workspace. */
  readonly restored: (receipt: CheckpointReceipt) => Promise<string>;
}

async function places(): Promise<Places> {
  const directory = await temporaryDirectory();
  const store = directoryStore(join(directory, "store"));
  const workDir = join(directory, "workspace");
  await mkdir(workDir);
  let count = 0;
  const restored = async ({ id }: CheckpointReceipt): Promise<string> => {
    count += 1;
    const other = join(directory, `restored-${count}`);
    await localExecutor({ workDir: other, restore: { store, id } }).start();
    return other;
  };
  return { store, workDir, restored };
}

describe("files in a checkpoint", () => {
  it("are no checkpoint if it is cancelled while it is completed", async () => {
    const { store, workDir } = await places();
    await writeFile(join(workDir, "file"), "content");
    const cancelling = new AbortController();
    let committed: Promise<unknown> | undefined;
    const begin: CheckpointStore["begin"] = async (options) => {
      const writer = await store.begin(options);
      return {
        has: (part) => writer.has(part),
        put: (bytes) => writer.put(bytes),
        commit(checkpoint) {
          cancelling.abort(new Error("enough"));
          const done = writer.commit(checkpoint);
          committed = done;
          return done;
        },
        [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose](),
      };
    };
    const cancelled: CheckpointStore = { ...countingStore(store).counted, begin };
    const executor = localExecutor({ workDir });
    const taking = executor.checkpoint({ store: cancelled, signal: cancelling.signal });
    await expect(taking).rejects.toThrow("enough");
    await committed;
    await expect.poll(() => store.list()).toEqual([]);
    expect(await executor.checkpoint({ store })).toMatchObject({ files: 1 });
    expect(await store.list()).toHaveLength(1);
  });

  it("come back with permissions, times, links and empty directories", async () => {
    const { store, workDir, restored } = await places();
    await mkdir(join(workDir, "a/empty"), { recursive: true });
    await writeFile(join(workDir, "a/run.sh"), "#!/bin/sh\n");
    await chmod(join(workDir, "a/run.sh"), 0o750);
    await utimes(join(workDir, "a/run.sh"), 1_000_000, 1_234_567.25);
    await chmod(join(workDir, "a/empty"), 0o500);
    await utimes(join(workDir, "a"), 1_000_000, 2_345_678.5);
    await symlink("a/run.sh", join(workDir, "relative"));
    await symlink(join(workDir, "a"), join(workDir, "absolute"));
    await symlink("not/there", join(workDir, "dangling"));
    const receipt = await localExecutor({ workDir }).checkpoint({ store });
    expect(receipt).toMatchObject({ files: 1, bytes: 10, variables: [], incomplete: [] });
    const back = await restored(receipt);
    expect(await readFile(join(back, "a/run.sh"), "utf8")).toBe("#!/bin/sh\n");
    expect(await stat(join(back, "a/run.sh"))).toMatchObject({ mode: 0o100750, mtimeMs: 1_234_567_250 });
    expect((await stat(join(back, "a/empty"))).mode).toBe(0o40500);
    expect((await stat(join(back, "a"))).mtimeMs).toBe(2_345_678_500);
    expect(await readlink(join(back, "relative"))).toBe("a/run.sh");
    expect(await readlink(join(back, "absolute"))).toBe("a");
    expect(await readlink(join(back, "dangling"))).toBe("not/there");
  });

  it("come back at any time that code has set", async () => {
    const { store, workDir, restored } = await places();
    execFileSync("touch", ["-d", "@9000000000000000", join(workDir, "late")]);
    const back = await restored(await localExecutor({ workDir }).checkpoint({ store }));
    expect(await readdir(back)).toEqual(["late"]);
  });

  it("are not restored if a link in the store leads out, by itself or through another one", async () => {
    const { store, workDir, restored } = await places();
    const at = { mode: 0o777, modifiedAt: 0, type: "link" } as const;
    const above = { ...at, path: "b", target: "a/../x" };
    for (const links of [
      [{ ...at, path: "a", target: "/etc" }],
      [{ ...at, path: "a", target: "../x" }],
      [{ ...at, path: "a", target: "." }, above],
    ]) {
      await using writer = await store.begin();
      const { id } = await writer.commit({ entries: links, incomplete: [] });
      const receipt = await localExecutor({ workDir }).checkpoint({ store });
      await expect(restored({ ...receipt, id })).rejects.toThrow("a link that leads out");
    }
  });

  it("are not committed if nobody could read them again", async () => {
    const { store } = await places();
    await using writer = await store.begin();
    const entries = [{ path: "a", type: "directory", mode: 0o777, modifiedAt: Number.NaN }] as const;
    await expect(writer.commit({ entries, incomplete: [] })).rejects.toThrow("could not be read again");
    expect(await store.list()).toEqual([]);
  });

  it("are left out if they are special, or links that lead out, and listed", async () => {
    const { store, workDir, restored } = await places();
    execFileSync("mkfifo", [join(workDir, "pipe")]);
    await mkdir(join(workDir, "d"));
    await symlink("..", join(workDir, "d/up"));
    await symlink("/etc", join(workDir, "out"));
    await symlink("out/passwd", join(workDir, "through"));
    // Within the workspace by its letters, but `d/up` is the workspace itself.
    await symlink("d/up/..", join(workDir, "above"));
    const receipt = await localExecutor({ workDir }).checkpoint({ store });
    expect(receipt.incomplete.map(({ kind, name }) => [kind, name])).toEqual([
      ["file", "above"],
      ["file", "out"],
      ["file", "pipe"],
      ["file", "through"],
    ]);
    expect(receipt.incomplete[1]?.reason).toBe("It is a link that leads out of the workspace.");
    const back = await restored(receipt);
    expect(await readdir(back)).toEqual(["d"]);
    expect(await readlink(join(back, "d/up"))).toBe("..");
  });

  it("may have names of any bytes", async () => {
    const { store, workDir, restored } = await places();
    const names = [Buffer.from("caf\xe9", "latin1"), Buffer.from("new\nline"), Buffer.from("  ~ ")];
    for (const name of names) await writeFile(Buffer.concat([Buffer.from(`${workDir}/`), name]), name);
    const receipt = await localExecutor({ workDir }).checkpoint({ store });
    const back = await readdir(await restored(receipt), { encoding: "buffer" });
    expect(back.map((name) => name.toString("latin1")).toSorted()).toEqual(
      names.map((name) => name.toString("latin1")).toSorted(),
    );
  });

  it("of more than one part come back whole, and holes as holes", async () => {
    const { store, workDir, restored } = await places();
    const content = Buffer.alloc(3_500_000, "0123456789abc");
    await writeFile(join(workDir, "large"), content);
    await using sparse = await open(join(workDir, "sparse"), "w");
    await sparse.write("end", 40 * 1_048_576);
    await sparse.truncate(64 * 1_048_576);
    await truncate(join(workDir, "large"), 3_400_000);
    const receipt = await localExecutor({ workDir }).checkpoint({ store });
    // The empty parts of the sparse file are one part in the store.
    expect(receipt.newBytes).toBeLessThan(3_400_000 + 3 * 1_048_576);
    const back = await restored(receipt);
    expect((await readFile(join(back, "large"))).equals(content.subarray(0, 3_400_000))).toBe(true);
    const { size, blocks } = await stat(join(back, "sparse"));
    expect(size).toBe(64 * 1_048_576);
    expect(blocks * 512).toBeLessThan(2 * 1_048_576);
    expect((await readFile(join(back, "sparse"))).toString("latin1", 40 * 1_048_576, 40 * 1_048_576 + 3)).toBe("end");
  });

  it("beyond maxBytes are left out and listed", async () => {
    const { store, workDir } = await places();
    await using huge = await open(join(workDir, "huge"), "w");
    await huge.truncate(2 ** 43);
    await writeFile(join(workDir, "small"), "x");
    const receipt = await localExecutor({ workDir }).checkpoint({ store });
    expect(receipt).toMatchObject({ files: 1, bytes: 1, incomplete: [{ kind: "file", name: "huge" }] });
  });

  it("are stored and read again only if they have changed", async () => {
    const { store, workDir, restored } = await places();
    for (let count = 0; count < 50; count += 1) await writeFile(join(workDir, `file-${count}`), `content ${count}`);
    const { counted, puts } = countingStore(store);
    const executor = localExecutor({ workDir });
    const first = await executor.checkpoint({ store: counted });
    expect(puts()).toBe(50);
    await writeFile(join(workDir, "file-7"), "changed");
    // A file that changed just before it was read is read again, since its next change may have the same time.
    await executor.checkpoint({ store: counted });
    await expect.poll(async () => (await executor.checkpoint({ store: counted }), puts())).toBe(0);
    await writeFile(join(workDir, "file-8"), "changed, too");
    const last = await executor.checkpoint({ store: counted });
    expect(puts()).toBe(1);
    expect(last.newBytes).toBeLessThan(first.newBytes * 2);
    const back = await restored(last);
    expect(await readFile(join(back, "file-7"), "utf8")).toBe("changed");
    expect(await readFile(join(back, "file-8"), "utf8")).toBe("changed, too");
    expect(await readFile(join(back, "file-9"), "utf8")).toBe("content 9");
    // What was restored is known, too.
    const later = localExecutor({ workDir: back });
    expect((await later.checkpoint({ store })).newBytes).toBeLessThan(20_000);
  });

  it("replace those of the same name, and leave others", async () => {
    const { store, workDir } = await places();
    await mkdir(join(workDir, "d"));
    await writeFile(join(workDir, "d/a"), "old");
    const executor = localExecutor({ workDir });
    const { id } = await executor.checkpoint({ store });
    await writeFile(join(workDir, "d/a"), "new");
    await writeFile(join(workDir, "d/b"), "mine");
    const later = localExecutor({ workDir, restore: { store, id } });
    await later.start();
    expect(await readFile(join(workDir, "d/a"), "utf8")).toBe("old");
    expect(await readFile(join(workDir, "d/b"), "utf8")).toBe("mine");
    // A second start finds the session's own, newer files.
    await writeFile(join(workDir, "d/a"), "newer");
    await later.stop();
    await later.start();
    expect(await readFile(join(workDir, "d/a"), "utf8")).toBe("newer");
  });

  it("come back at every start in a temporary workspace", async () => {
    const { store, workDir } = await places();
    await writeFile(join(workDir, "a"), "kept");
    const { id } = await localExecutor({ workDir }).checkpoint({ store });
    const executor = localExecutor({ restore: { store, id } });
    expect(executor.restored).toBeUndefined();
    expect(Buffer.from(await executor.files.read("a")).toString()).toBe("kept");
    expect(executor.restored).toEqual({ id, files: 1, bytes: 4, variables: [], incomplete: [] });
    await executor.stop();
    await executor.start();
    expect(Buffer.from(await executor.files.read("a")).toString()).toBe("kept");
  });

  it("do not replace a directory, and then none is restored", async () => {
    const { store, workDir } = await places();
    await writeFile(join(workDir, "a"), "1");
    await writeFile(join(workDir, "b"), "2");
    const { id } = await localExecutor({ workDir }).checkpoint({ store });
    const other = join(await temporaryDirectory(), "other");
    await mkdir(join(other, "b/mine"), { recursive: true });
    await expect(localExecutor({ workDir: other, restore: { store, id } }).start()).rejects.toThrow(
      /"b" is a directory in the workspace, and a file in the checkpoint; nothing was restored/,
    );
    expect(await readdir(other)).toEqual(["b"]);
    expect((await lstat(join(other, "b"))).isDirectory()).toBe(true);
  });

  it("are listed if they change while they are read", needs("bash"), async () => {
    const { store } = await places();
    const executor = localExecutor();
    const ending = new AbortController();
    const code = "head -c 9000000 /dev/urandom > busy; touch begun; while :; do printf x >> busy; done";
    const run = executor
      .executeCodeBlocks([{ language: "bash", code }], { signal: ending.signal })
      .catch((error: unknown) => error);
    await expect.poll(async () => (await executor.files.list()).some(({ path }) => path === "begun")).toBe(true);
    await expect
      .poll(async () => (await executor.checkpoint({ store })).incomplete)
      .toEqual([{ kind: "file", name: "busy", reason: expect.stringContaining("changed while it was read") }]);
    ending.abort();
    await run;
  });
});

describe("checkpoint()", () => {
  it("names wrong options", async () => {
    const executor = localExecutor();
    const { store } = await places();
    // @ts-expect-error -- as from JavaScript
    await expect(executor.checkpoint({ store, variable: true })).rejects.toThrow(/Did you mean "variables"/);
    // @ts-expect-error -- as from JavaScript
    await expect(executor.checkpoint({ store: "checkpoints" })).rejects.toThrow(/a store of @fenced\/checkpoints/);
    expect(() => localExecutor({ restore: { store, id: "latest" } })).toThrow(/64 hexadecimal digits/);
  });

  it("stops at an abort, and leaves no checkpoint", async () => {
    const { store, workDir } = await places();
    await writeFile(join(workDir, "a"), "1");
    const executor = localExecutor({ workDir });
    await executor.start();
    const ending = new AbortController();
    const taking = executor.checkpoint({ store, signal: ending.signal });
    ending.abort(new Error("enough"));
    await expect(taking).rejects.toThrow("enough");
    expect(await store.list()).toEqual([]);
  });

  it("rejects after stop()", async () => {
    const { store } = await places();
    const executor = localExecutor();
    await executor.stop();
    await expect(executor.checkpoint({ store })).rejects.toMatchObject({ code: "executor_stopped" });
  });
});
