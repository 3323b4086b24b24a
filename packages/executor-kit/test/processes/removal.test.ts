import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { removalFunctions, removeTree } from "@fenced/executor-kit";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

async function removeByShell(place: string): Promise<void> {
  await promisify(execFile)("sh", ["-c", `${removalFunctions}\nremove_trees "$1"`, "test", place]);
}

describe.each([
  ["a shell that outlives a program", removeByShell],
  ["a program", removeTree],
])("a removal by %s", needs("root"), (_, remove) => {
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
});
