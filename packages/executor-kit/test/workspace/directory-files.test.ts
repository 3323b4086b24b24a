import { execFileSync } from "node:child_process";
import {
  chmod,
  chown,
  link,
  lstat,
  lutimes,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { DirectoryFiles } from "@fenced/executor-kit";
import { describe, expect, it, onTestFinished } from "vitest";
import { replaceLocalFile } from "../../src/workspace/file-replacement.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

async function workspace() {
  const top = await temporaryDirectory();
  const root = path.join(top, "workspace");
  const outside = path.join(top, "outside");
  await Promise.all([mkdir(root), mkdir(outside)]);
  await writeFile(path.join(outside, "secret"), "secret");
  return { root, outside, files: new DirectoryFiles(root, { isHidden: (file) => file.startsWith(".own") }) };
}

const openDescriptors = async (): Promise<number> => (await readdir("/proc/self/fd")).length;

describe("DirectoryFiles", () => {
  it("writes, lists, reads and removes", async () => {
    const { files, root } = await workspace();
    await files.write("b/c/d.bin", Uint8Array.of(0, 255, 10));
    await files.write("a.txt", "ü");
    await writeFile(path.join(root, ".own-1"), "");
    expect(await files.list()).toEqual([
      { path: "a.txt", type: "file", size: 2 },
      { path: "b/c/d.bin", type: "file", size: 3 },
    ]);
    expect(await files.list("b")).toEqual([{ path: "b/c/d.bin", type: "file", size: 3 }]);
    expect(await files.read("b/c/d.bin")).toEqual(Uint8Array.of(0, 255, 10));
    await files.remove("b");
    expect(await files.list()).toEqual([{ path: "a.txt", type: "file", size: 2 }]);
  });

  it("fails if code replaces a file while it is written, instead of losing what was written", async () => {
    const { files, root } = await workspace();
    const replacePart = async (): Promise<void> => {
      const [part = ""] = (await readdir(root)).filter((name) => name.endsWith(".part"));
      await writeFile(path.join(root, "decoy"), "decoy");
      await rename(path.join(root, "decoy"), path.join(root, part));
    };
    const writer = await files.writer("a");
    await writer.write(Buffer.from("written"));
    await replacePart();
    await expect(writer.close()).rejects.toThrow(/"a" is not what was written: something replaced it meanwhile/);
    const content = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from("written");
      await replacePart();
    };
    await expect(files.put("a", content())).rejects.toThrow(InvalidInputError);
    const before = await openDescriptors();
    await expect(replaceLocalFile(path.join(root, "copy"), content())).rejects.toThrow(/not the file that was written/);
    expect(await openDescriptors()).toBe(before);
    await files.write("a", "written");
    expect(Buffer.from(await files.read("a")).toString()).toBe("written");
  });

  it("does not replace one copy by that of another file, whatever the reason that both have the same place", async () => {
    const { files, root, outside } = await workspace();
    await writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.of(0xff)]), "byte");
    for (const name of ["%FF", "c", "d"]) await writeFile(path.join(root, name), name);
    const names = (await files.list()).map((file) => file.path);
    expect(names).toHaveLength(4);
    await expect(files.download(names, outside)).rejects.toThrow(/The copies of "%FF" and .* would be the same file/);
    const [once, twice] = await files.download(["%FF", "%FF"], outside);
    expect(once).toBe(twice);
    await symlink("%FF", path.join(outside, "linked"));
    await files.write("linked", "text");
    const both = files.download(["%FF", "linked"], outside);
    await expect(both).rejects.toThrow(/The copies of "%FF" and "linked" would be the same file/);
  });

  it("downloads through a link, be there a file at its end or not, but not through a circle", async () => {
    const { files, outside } = await workspace();
    await files.write("a", "text");
    await mkdir(path.join(outside, "there"));
    await symlink("there/middle", path.join(outside, "a"));
    await symlink("../new", path.join(outside, "there/middle"));
    for (const round of ["first", "second"]) {
      await files.write("a", round);
      await files.download(["a"], outside);
      expect(await readFile(path.join(outside, "new"), "utf8")).toBe(round);
      expect((await lstat(path.join(outside, "a"))).isSymbolicLink()).toBe(true);
    }
    await symlink("b", path.join(outside, "b"));
    await files.write("b", "text");
    await expect(files.download(["b"], outside)).rejects.toThrow(/b leads to itself/);
  });

  it("moves one name of a file to another one, which alone stays", async () => {
    const { files, root } = await workspace();
    await files.write("a", "text");
    await files.makeDirectory("d");
    for (const name of ["b", "d/a", "A"]) await link(path.join(root, "a"), path.join(root, name));
    await files.move("a", "b");
    await files.move("d/a", "b");
    await files.move("b", "b");
    expect((await files.list()).map((file) => file.path)).toEqual(["A", "b"]);
    expect(Buffer.from(await files.read("b")).toString()).toBe("text");
  });

  it.runIf(process.platform === "linux")("has no time for a file whose time no date can have", async () => {
    // A tmpfs keeps any time.
    const root = await mkdtemp("/dev/shm/fenced-test-");
    onTestFinished(() => rm(root, { recursive: true }));
    const files = new DirectoryFiles(root, { isHidden: () => false });
    await files.write("file", "");
    await files.makeDirectory("directory");
    await symlink("file", path.join(root, "link"));
    for (const name of ["file", "directory"]) await utimes(path.join(root, name), 9e12, 9e12);
    await lutimes(path.join(root, "link"), 9e12, 9e12);
    for (const name of ["file", "directory", "link"]) {
      expect(await files.stat(name, false)).not.toHaveProperty("modifiedAt");
    }
  });

  it("overwrites a longer file completely", async () => {
    const { files } = await workspace();
    await files.write("a", "long text");
    await files.write("a", "x");
    expect(Buffer.from(await files.read("a")).toString()).toBe("x");
  });

  it("says which file is missing", async () => {
    const { files } = await workspace();
    await expect(files.read("no/such")).rejects.toThrow(FileNotFoundError);
    await expect(files.list("nowhere")).rejects.toThrow(/"nowhere"/);
    await expect(files.remove("none")).rejects.toThrow(FileNotFoundError);
    await files.write("file", "");
    await expect(files.read("file/below")).rejects.toThrow(FileNotFoundError);
  });

  it("rejects a directory, or the workspace itself, as a file", async () => {
    const { files } = await workspace();
    await files.write("d/x", "");
    await expect(files.read("d")).rejects.toThrow(InvalidInputError);
    await expect(files.write("d", "")).rejects.toThrow(InvalidInputError);
    await expect(files.remove(".")).rejects.toThrow(InvalidInputError);
  });

  it.each(["../outside/secret", "/etc/passwd", "a/../../outside/secret"])("rejects %s", async (file) => {
    const { files } = await workspace();
    await expect(files.read(file)).rejects.toThrow(WorkspacePathError);
    await expect(files.write(file, "x")).rejects.toThrow(WorkspacePathError);
    await expect(files.remove(file)).rejects.toThrow(WorkspacePathError);
    await expect(files.download([file], ".")).rejects.toThrow(WorkspacePathError);
  });

  it("does not follow a link out of the workspace, neither to read nor to write", async () => {
    const { files, root, outside } = await workspace();
    await symlink(outside, path.join(root, "dir"));
    await symlink(path.join(outside, "secret"), path.join(root, "file"));
    await symlink(path.join(outside, "new"), path.join(root, "dangling"));
    await symlink("../outside", path.join(root, "relative"));
    for (const file of ["dir/secret", "file", "relative/secret"]) {
      await expect(files.read(file)).rejects.toThrow(WorkspacePathError);
    }
    for (const file of ["dir/new", "file", "dangling", "relative/new"]) {
      await expect(files.write(file, "x")).rejects.toThrow(WorkspacePathError);
    }
    await expect(files.list("dir")).rejects.toThrow(WorkspacePathError);
    await expect(files.remove("dir/secret")).rejects.toThrow(WorkspacePathError);
    expect(await readdir(outside)).toEqual(["secret"]);
    expect(await readFile(path.join(outside, "secret"), "utf8")).toBe("secret");
    expect(await files.list()).toEqual([]);
  });

  it("follows a link that stays inside, and removes the link, not its target", async () => {
    const { files, root } = await workspace();
    await files.write("real/a", "text");
    await symlink("real", path.join(root, "dir"));
    await symlink("real/a", path.join(root, "file"));
    expect(Buffer.from(await files.read("dir/a")).toString()).toBe("text");
    expect(Buffer.from(await files.read("file")).toString()).toBe("text");
    await files.remove("dir");
    await files.remove("file");
    expect(await files.list()).toEqual([{ path: "real/a", type: "file", size: 4 }]);
  });

  it("reports that the workspace is gone, or that a part of the path is a file", async () => {
    const { files, root } = await workspace();
    await files.write("file", "");
    await expect(files.write("file/below", "")).rejects.toThrow(/a file, not a directory/);
    await expect(files.write("x".repeat(300), "")).rejects.toThrow(InvalidInputError);
    await rm(root, { recursive: true });
    await expect(files.list()).rejects.toThrow(BackendUnavailableError);
    await expect(files.write("a", "")).rejects.toThrow(/no longer exists/);
  });

  it("rejects files and directories that are too large for memory", async () => {
    const { files, root } = await workspace();
    await files.write("sparse", "");
    await truncate(path.join(root, "sparse"), 100_000_000_000);
    await expect(files.read("sparse")).rejects.toThrow(/"sparse" is larger than 536870912 bytes.*files\.download\(\)/);
    const bounded = new DirectoryFiles(root, { limits: { readBytes: 4, listEntries: 3, listCharacters: 100 } });
    await files.write("dir/a", "four");
    expect(Buffer.from(await bounded.read("dir/a")).toString()).toBe("four");
    expect(await bounded.list()).toHaveLength(2);
    await files.write("dir/b", "fives");
    await expect(bounded.read("dir/b")).rejects.toThrow(InvalidInputError);
    await expect(bounded.list(".")).rejects.toThrow(/too many files below "\."/);
    await files.remove("sparse");
    await files.write(`long/${"x".repeat(100)}`, "");
    await expect(bounded.list("long")).rejects.toThrow(InvalidInputError);
  });

  it("does not hang on a named pipe", async () => {
    const { files, root } = await workspace();
    execFileSync("mkfifo", [path.join(root, "pipe")]);
    await expect(files.read("pipe")).rejects.toThrow(InvalidInputError);
    await expect(files.write("pipe", "x")).rejects.toThrow(InvalidInputError);
  });

  it("stays inside while a directory is being swapped for a link", async () => {
    const { files, root, outside } = await workspace();
    await files.write("real/secret", "mine");
    await symlink(outside, path.join(root, "link"));
    const stop = new AbortController();
    const swap = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        await rename(path.join(root, "real"), path.join(root, "spare")).catch(() => {});
        await rename(path.join(root, "link"), path.join(root, "real")).catch(() => {});
        await rename(path.join(root, "real"), path.join(root, "link")).catch(() => {});
        await rename(path.join(root, "spare"), path.join(root, "real")).catch(() => {});
      }
    };
    const swapper = swap();
    const seen = new Set<string>();
    for (let round = 0; round < 500; round += 1) {
      const text = await files.read("real/secret").then(
        (bytes) => Buffer.from(bytes).toString(),
        () => "refused",
      );
      seen.add(text);
      await files.write("real/planted", "x").catch(() => {});
    }
    stop.abort();
    await swapper;
    expect(seen).not.toContain("secret");
    expect(await readdir(outside)).toEqual(["secret"]);
  });

  it("uploads and downloads", async () => {
    const { files, outside } = await workspace();
    const local = path.join(outside, "with space ü.bin");
    await writeFile(local, Buffer.alloc(300_000, 7));
    await files.upload([local]);
    expect(await files.list()).toEqual([{ path: "with space ü.bin", type: "file", size: 300_000 }]);
    await files.write("deep/er/x", "y");
    const target = await mkdtemp(path.join(outside, "to-"));
    const copies = await files.download(["deep/er/x", "with space ü.bin"], path.join(target, "new"));
    expect(copies).toEqual([path.join(target, "new/deep/er/x"), path.join(target, "new/with space ü.bin")]);
    expect(await readFile(path.join(target, "new/deep/er/x"), "utf8")).toBe("y");
    expect((await readFile(path.join(target, "new/with space ü.bin"))).equals(Buffer.alloc(300_000, 7))).toBe(true);
  });

  it.skipIf(process.platform === "win32")("keeps the permissions and the owner of a local file", async () => {
    const { files, outside } = await workspace();
    await files.write("a", "new");
    const copy = path.join(outside, "a");
    await writeFile(copy, "old");
    // More than most umasks leave a new file.
    await chmod(copy, 0o666);
    const owner = process.getuid?.() === 0 ? 12_345 : (process.getuid?.() ?? 0);
    await chown(copy, owner, process.getgid?.() ?? 0);
    await files.download(["a"], outside);
    expect(await readFile(copy, "utf8")).toBe("new");
    const { mode, uid } = await stat(copy);
    expect([mode & 0o777, uid]).toEqual([0o666, owner]);
  });

  it("keeps the content of a file that is copied onto itself", async () => {
    const { files, root, outside } = await workspace();
    await files.write("deep/a", "text");
    await files.write("b", "text");
    await symlink(root, path.join(outside, "link"));
    await files.upload([path.join(root, "b"), path.join(outside, "link/b")]);
    await files.download(["deep/a", "b"], root);
    expect(await files.list()).toEqual([
      { path: "b", type: "file", size: 4 },
      { path: "deep/a", type: "file", size: 4 },
    ]);
  });

  it("lists existing files while directories come and go and are swapped for links", async () => {
    const { files, root, outside } = await workspace();
    await files.write("stays/x", "");
    const stop = new AbortController();
    const changer = (async () => {
      while (!stop.signal.aborted) {
        await mkdir(path.join(root, "goes/deep"), { recursive: true });
        await rm(path.join(root, "goes"), { recursive: true });
        await symlink(outside, path.join(root, "goes"));
        await rm(path.join(root, "goes"));
      }
    })();
    const seen = new Set<string>();
    for (let round = 0; round < 500; round += 1) {
      for (const file of await files.list()) seen.add(file.path);
    }
    stop.abort();
    await changer;
    expect([...seen]).toEqual(["stays/x"]);
  });

  it("uploads nothing if one of the files is missing", async () => {
    const { files, outside } = await workspace();
    const local = path.join(outside, "secret");
    await expect(files.upload([local, path.join(outside, "none")])).rejects.toThrow(FileNotFoundError);
    await expect(files.upload([outside])).rejects.toThrow(InvalidInputError);
    expect(await files.list()).toEqual([]);
  });

  it.skipIf(process.platform !== "linux")("closes every descriptor, even after errors", async () => {
    const { files, outside } = await workspace();
    await files.write("warm/up", "");
    const before = await openDescriptors();
    for (let round = 0; round < 20; round += 1) {
      await files.write("a/b", "x");
      await files.read("a/b");
      await files.list();
      await files.read("a/none").catch(() => {});
      await files.read("a").catch(() => {});
      await files.upload([path.join(outside, "secret")]);
      await files.download(["a/b"], outside);
    }
    expect(await openDescriptors()).toBeLessThanOrEqual(before);
    await rm(path.join(outside, "a"), { recursive: true });
  });
});
