import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createExecutor, printed, run } from "./support/create-executor.ts";

const workspacePath = "/home/user";

describe("a workspace at another path", needs("docker"), () => {
  let workDir = "";
  beforeEach(async () => {
    workDir = await mkdtemp(join(tmpdir(), "fenced-test-"));
  });
  afterEach(async () => {
    await rm(workDir, { recursive: true });
  });

  it("is where blocks start, write and find files, with a directory of this host", async () => {
    await using executor = createExecutor({ workDir, workspacePath });
    await executor.files.write("given.txt", "given");
    const code = "pwd; cat /home/user/given.txt; echo made > /home/user/made.txt; ls /workspace";
    const { output } = await run(executor, "bash", code);
    expect(output).toMatch(/^\/home\/user\ngiven(.*\n)?.*No such file/);
    expect(await readFile(join(workDir, "made.txt"), "utf8")).toBe("made\n");
    expect(executor.workspacePath).toBe(workspacePath);
  });

  it("is the same in a volume that another program connects to", async () => {
    await using executor = createExecutor({ workspacePath, keepAliveMs: 60_000 });
    await executor.files.write("given.txt", "given");
    expect(await printed(executor, "bash", "pwd; cat given.txt")).toBe("/home/user\ngiven");
    expect(executor.workspacePath).toBe(workspacePath);
  });

  it.each(["home", "/", "/home/../etc", "/a:b"])("is refused if it is %s", (wrong) => {
    expect(() => createExecutor({ workspacePath: wrong })).toThrow(/workspacePath.*must be an absolute path/);
  });
});
