import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { DirectoryFiles } from "@fenced/executor-kit";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  readOwnFile,
  removeFunctionsPackage,
  removeOwnFile,
  writeOwnFile,
} from "../../src/workspace/session-directories.ts";
import { removeTree } from "../../src/workspace/walk-tree.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** Runs Python in a directory until the test is finished; resolves when it has printed something. */
async function attack(directory: string, program: string): Promise<void> {
  const child = spawn("python3", ["-c", program], { cwd: directory, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
  await once(child.stdout, "data");
}

/**
 * Swaps `tree/victim` and `link`, which leads to `outside`, atomically and again and again. Recreates a
 * link that was removed.
 */
const exchange = (outside: string) => `
import ctypes, os
libc = ctypes.CDLL(None)
number = 0
print("ready", flush=True)
while True:
    libc.renameat2(-100, b"tree/victim", -100, b"link", 2)
    if os.path.islink("link") or os.path.islink("tree/victim"): continue
    number += 1
    try:
        if os.path.lexists("link"): os.rename("link", "old-%d" % number)
        os.symlink(${JSON.stringify(outside)}, "link")
    except OSError: pass
`;

async function deepTree(root: string, levels: number): Promise<void> {
  const program = `import os
for level in range(${levels}):
    os.mkdir("d"); open("f", "w").close(); os.chdir("d")`;
  execFileSync("python3", ["-c", program], { cwd: root });
}

describe("a workspace that code changes meanwhile", needs("python3"), () => {
  it.skipIf(process.platform !== "linux")(
    "removes nothing outside while directories and links are being swapped",
    async () => {
      const top = await temporaryDirectory();
      const [root, outside] = [path.join(top, "workspace"), path.join(top, "outside")];
      await mkdir(root);
      const files = new DirectoryFiles(root);
      await mkdir(outside);
      await symlink(outside, path.join(root, "link"));
      for (let file = 0; file < 50; file += 1) await writeFile(path.join(outside, `precious-${file}`), "");
      await mkdir(path.join(root, "tree"));
      await attack(root, exchange(outside));
      for (let round = 0; round < 60; round += 1) {
        await mkdir(path.join(root, "tree/victim"), { recursive: true }).catch(() => {});
        for (let file = 0; file < 50; file += 1) {
          await writeFile(path.join(root, `tree/victim/own-${file}`), "").catch(() => {});
        }
        await files.remove("tree").catch(() => {});
        await mkdir(path.join(root, "tree"), { recursive: true });
        const left = await readdir(outside);
        expect(left.filter((name) => name.startsWith("precious"))).toHaveLength(50);
      }
    },
  );

  it("lists, reads and removes a tree of 2,500 levels", { timeout: 120_000 }, async () => {
    const root = await temporaryDirectory();
    await deepTree(root, 2500);
    const files = new DirectoryFiles(root);
    const listed = await files.list();
    expect(listed).toHaveLength(2500);
    expect(await files.read(`${"d/".repeat(2499)}f`)).toEqual(new Uint8Array());
    await files.remove("d");
    expect(await readdir(root)).toEqual(["f"]);
    await deepTree(root, 2500);
    await removeTree(root);
    await expect(lstat(root)).rejects.toThrow("ENOENT");
  });

  it("removes directories without permissions, and named pipes", async () => {
    const root = await temporaryDirectory();
    await mkdir(path.join(root, "tree/locked/below"), { recursive: true });
    execFileSync("mkfifo", [path.join(root, "tree/locked/pipe")]);
    await writeFile(path.join(root, "tree/locked/below/file"), "");
    await chmod(path.join(root, "tree/locked/below"), 0);
    await chmod(path.join(root, "tree/locked"), 0o500);
    await new DirectoryFiles(root).remove("tree");
    expect(await readdir(root)).toEqual([]);
  });

  it("ends the removal of a directory to which code keeps adding files", async () => {
    const root = await temporaryDirectory();
    const fill = `import os
print("ready", flush=True)
number = 0
while True:
    number += 1
    try:
        os.makedirs("tree/deep", exist_ok=True)
        open(f"tree/deep/{number}", "w").close()
    except OSError: pass`;
    await attack(root, fill);
    const files = new DirectoryFiles(root);
    // Whether it succeeds or gives up is a matter of luck, but it must end.
    const ended = await files.remove("tree").then(
      () => "removed",
      (error: unknown) => String(error),
    );
    expect(ended).toMatch(/removed|keeps adding files|There is no file/);
  });
});

describe("the executor's own files", needs("python3"), () => {
  it("do not give away the target of a link", async () => {
    const top = await temporaryDirectory();
    const secret = path.join(top, "secret");
    await writeFile(secret, "secret", { mode: 0o600 });
    // Replaces each new file with a link, as a process left behind could with inotify.
    const swap = `import os
os.symlink(${JSON.stringify(secret)}, "link")
print("ready", flush=True)
while True:
    for name in os.listdir("."):
        if name.startswith("own-"):
            try: os.rename("link", name); os.symlink(${JSON.stringify(secret)}, "link")
            except OSError: pass`;
    await attack(top, swap);
    const mine = await stat(secret);
    for (let file = 0; file < 300; file += 1) {
      writeOwnFile(path.join(top, `own-${file}`), "print(1)", { uid: mine.uid, gid: 65_534 });
    }
    const after = await stat(secret);
    expect({ gid: after.gid, mode: after.mode }).toEqual({ gid: mine.gid, mode: mine.mode });
    expect(await readFile(secret, "utf8")).toBe("secret");
  });

  it("are only written anew, and not read if they are links, pipes or large", async () => {
    const top = await temporaryDirectory();
    const place = (name: string): string => path.join(top, name);
    execFileSync("sh", ["-c", "echo secret > secret; ln -s secret link; mkfifo pipe; truncate -s 3G big"], {
      cwd: top,
    });
    expect(() => writeOwnFile(place("link"), "x")).toThrow("EEXIST");
    expect(() => writeOwnFile(place("pipe"), "x")).toThrow("EEXIST");
    writeOwnFile(place("own"), "text");
    expect(await readOwnFile(place("own"))).toBe("text");
    await expect(readOwnFile(place("link"))).rejects.toThrow("ELOOP");
    await expect(readOwnFile(place("pipe"))).rejects.toThrow(InvalidInputError);
    await expect(readOwnFile(place("big"))).rejects.toThrow(InvalidInputError);
    await mkdir(place("directory/deep"), { recursive: true });
    for (const name of ["own", "link", "pipe", "directory", "missing"]) await removeOwnFile(place(name));
    expect((await readdir(top)).toSorted()).toEqual(["big", "secret"]);
  });

  it("include the package of functions, which is removed unless code has changed it", async () => {
    const root = await temporaryDirectory();
    const make = (marker: string): void => {
      execFileSync("sh", ["-c", `mkdir -p node_modules/functions && cd node_modules/functions && ${marker}`], {
        cwd: root,
      });
    };
    for (const marker of ["mkfifo .fenced-functions", "ln -s /dev/zero .fenced-functions", "mkdir .fenced-functions"]) {
      make(marker);
      await removeFunctionsPackage(root, "functions", "me");
      expect(await readdir(path.join(root, "node_modules/functions"))).toEqual([".fenced-functions"]);
      await removeTree(path.join(root, "node_modules"));
    }
    make("printf me > .fenced-functions; mkdir sub; mkfifo sub/pipe");
    await removeFunctionsPackage(root, "functions", "me");
    expect(await readdir(root)).toEqual([]);
    execFileSync(
      "sh",
      ["-c", "mkdir -p real/functions; printf me > real/functions/.fenced-functions; ln -s real node_modules"],
      { cwd: root },
    );
    await removeFunctionsPackage(root, "functions", "me");
    expect(await readdir(path.join(root, "real/functions"))).toEqual([".fenced-functions"]);
  });
});
