import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeDirectories, makeDirectoriesSync } from "../../src/runtime/index.ts";

let top: string;
beforeAll(async () => {
  top = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
});
afterAll(() => rm(top, { recursive: true }));

describe.each([
  ["makeDirectories", makeDirectories],
  ["makeDirectoriesSync", async (...words: Parameters<typeof makeDirectoriesSync>) => makeDirectoriesSync(...words)],
])("%s", (name, make) => {
  it("makes what is missing, and says whether there was something to make", async () => {
    const deep = path.join(top, name, "a", "b");
    expect(await make(deep, { mode: 0o700 })).toBe(true);
    expect([(await stat(deep)).mode & 0o777, (await stat(path.dirname(deep))).mode & 0o777]).toEqual([0o700, 0o700]);
    expect([await make(deep), await make("/")]).toEqual([false, false]);
    const [linked, unlisted] = [path.join(top, `${name}-link`), path.join(top, `${name}-unlisted`)];
    await symlink(deep, linked);
    expect(await make(path.join(linked, "below"))).toBe(true);
    await mkdir(path.join(unlisted, "inside"), { recursive: true });
    await chmod(unlisted, 0o111);
    expect(await make(path.join(unlisted, "inside", "new"))).toBe(true);
  });

  it("fails where a file is in the way", async () => {
    const file = path.join(top, `${name}-file`);
    await writeFile(file, "");
    await expect(make(file)).rejects.toThrow("EEXIST");
    await expect(make(path.join(file, "below"))).rejects.toThrow("ENOTDIR");
  });

  it.skipIf(!existsSync("/proc/self"))("ends where nothing can be made, as in /proc", async () => {
    await expect(make("/proc/nowhere")).rejects.toThrow("ENOENT");
    await expect(make("/proc/nowhere/below")).rejects.toThrow("ENOENT");
  });
});
