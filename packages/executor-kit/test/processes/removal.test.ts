import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { removalFunctions, removeTree } from "@fenced/executor-kit";
import { sharedModules } from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

async function removeByShell(place: string): Promise<void> {
  await promisify(execFile)("sh", ["-c", `${removalFunctions}\nremove_trees "$1"`, "test", place]);
}

async function removeByPython(place: string): Promise<void> {
  const { _fenced_mounts: mounts } = sharedModules;
  const program = "import shutil, sys\nexec(sys.argv[1])\nif detach(sys.argv[2]): shutil.rmtree(sys.argv[2])";
  await promisify(execFile)("python3", ["-c", program, mounts, place]);
}

/** A file system that takes part in the propagation of mounts, as `/` does where systemd runs. */
async function sharedFileSystem(): Promise<string> {
  const place = await temporaryDirectory();
  execFileSync("mount", ["-t", "tmpfs", "none", place]);
  onTestFinished(() => {
    execFileSync("mount", ["--make-rprivate", place]);
    execFileSync("umount", ["-l", place]);
  });
  execFileSync("mount", ["--make-private", place]);
  execFileSync("mount", ["--make-shared", place]);
  return place;
}

describe.each([
  ["a shell that outlives a program", removeByShell],
  ["a program", removeTree],
  ["a supervisor", removeByPython],
])("a removal by %s", needs("root", "python3"), (_, remove) => {
  // The kernel writes such characters as numbers, which more digits may follow.
  it.each(["plain", "a 1", String.raw`back\040slash`, "line\n7", "ü#"])(
    "leaves what is mounted at %j below, in two layers",
    async (name) => {
      const [source, parent] = [await temporaryDirectory(), await temporaryDirectory()];
      await writeFile(path.join(source, "precious"), "");
      const tree = path.join(parent, "tree 2");
      const place = path.join(tree, "in", name);
      await mkdir(place, { recursive: true });
      await writeFile(path.join(tree, "file"), "");
      await symlink(source, path.join(tree, "link"));
      execFileSync("mount", ["-t", "tmpfs", "none", place]);
      const inner = path.join(place, "inner");
      await mkdir(inner);
      execFileSync("mount", ["--bind", source, inner]);
      await remove(tree);
      expect([existsSync(tree), await readdir(source)]).toEqual([false, ["precious"]]);
    },
  );

  it("leaves what is mounted at the place itself, and a neighbour whose name begins alike", async () => {
    const [source, parent] = [await temporaryDirectory(), await temporaryDirectory()];
    await writeFile(path.join(source, "precious"), "");
    for (const name of ["tree", "tree-2"]) {
      await mkdir(path.join(parent, name));
      execFileSync("mount", ["--bind", source, path.join(parent, name)]);
    }
    await remove(path.join(parent, "tree"));
    expect(await readdir(parent)).toEqual(["tree-2"]);
    expect(await readdir(path.join(parent, "tree-2"))).toEqual(["precious"]);
    execFileSync("umount", [path.join(parent, "tree-2")]);
    expect(await readdir(source)).toEqual(["precious"]);
  });

  it("leaves mounted what is also mounted below a copy of all file systems", async () => {
    const machine = await sharedFileSystem();
    const [home, tree] = [path.join(machine, "home"), path.join(machine, "tree")];
    await mkdir(home);
    execFileSync("mount", ["-t", "tmpfs", "none", home]);
    await writeFile(path.join(home, "precious"), "");
    await mkdir(path.join(tree, "x"), { recursive: true });
    await mkdir(path.join(tree, "y"));
    execFileSync("mount", ["--rbind", machine, path.join(tree, "x")]);
    execFileSync("mount", ["--rbind", machine, path.join(tree, "y")]);
    await remove(tree);
    expect([await readdir(machine), await readdir(home)]).toEqual([["home"], ["precious"]]);
  });

  it("unmounts nothing if a mount hides a copy of all file systems", async () => {
    const machine = await sharedFileSystem();
    const [home, hidden] = [path.join(machine, "home"), path.join(machine, "tree", "x")];
    await mkdir(home);
    execFileSync("mount", ["-t", "tmpfs", "none", home]);
    await writeFile(path.join(home, "precious"), "");
    await mkdir(path.join(hidden, "copy"), { recursive: true });
    execFileSync("mount", ["--rbind", machine, path.join(hidden, "copy")]);
    execFileSync("mount", ["-t", "tmpfs", "none", hidden]);
    await remove(path.join(machine, "tree")).catch(() => {});
    expect([await readdir(home), existsSync(hidden)]).toEqual([["precious"], true]);
  });

  it("leaves what is mounted below a name that is not UTF-8", async () => {
    const [source, parent] = [await temporaryDirectory(), await temporaryDirectory()];
    await writeFile(path.join(source, "precious"), "");
    await mkdir(path.join(parent, "tree"));
    const program = String.raw`place=$1/tree/$(printf '\377'); mkdir "$place"; mount --bind "$2" "$place"`;
    execFileSync("sh", ["-c", program, "test", parent, source]);
    await remove(path.join(parent, "tree"));
    expect([await readdir(parent), await readdir(source)]).toEqual([[], ["precious"]]);
  });
});

describe.each([
  ["a shell that outlives a program", removeByShell],
  ["a supervisor", removeByPython],
])("a removal by %s", needs("root", "python3"), (_, remove) => {
  it("leaves what is mounted in a directory that a link leads to", async () => {
    const [source, parent] = [await temporaryDirectory(), await temporaryDirectory()];
    await writeFile(path.join(source, "precious"), "");
    const place = path.join(parent, "real", "tree", "x");
    await mkdir(place, { recursive: true });
    await symlink("real", path.join(parent, "link"));
    execFileSync("mount", ["--bind", source, place]);
    await remove(path.join(parent, "link", "tree"));
    expect([await readdir(path.join(parent, "real")), await readdir(source)]).toEqual([[], ["precious"]]);
  });
});
