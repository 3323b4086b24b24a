import { existsSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createExecutor } from "./support/create-executor.ts";

describe("relative paths", needs("docker"), () => {
  const before = process.cwd();
  let directory = "";
  beforeEach(async () => {
    directory = await realpath(await mkdtemp(join(tmpdir(), "fenced-test-")));
    for (const name of ["one", "two"]) await mkdir(join(directory, name));
    process.chdir(join(directory, "one"));
  });
  afterEach(async () => {
    process.chdir(before);
    await rm(directory, { recursive: true });
  });

  it("mean the same directory for the executor's life, and are dumped as given", async () => {
    await using executor = createExecutor({ workDir: "work", outputDir: "out", stateful: true });
    process.chdir(join(directory, "two"));
    await executor.files.write("kept.txt", "kept");
    await executor.stop();
    await executor.start();
    expect((await executor.files.list()).map((file) => file.path)).toEqual(["kept.txt"]);
    expect(
      ["one/work/kept.txt", "one/out", "two/work", "two/out"].map((name) => existsSync(join(directory, name))),
    ).toEqual([true, true, false, false]);
    expect(executor.dumpComponent().config).toMatchObject({ workDir: "work", outputDir: "out" });
  });
});
