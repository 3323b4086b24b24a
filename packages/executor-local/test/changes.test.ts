import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { LocalCommandLineCodeExecutor, type LocalExecutorOptions } from "@fenced/executor-local";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

describe.skipIf(process.platform === "win32")("changes of a work directory", () => {
  let workDir = "";
  beforeEach(async () => {
    workDir = await mkdtemp(path.join(tmpdir(), "fenced-changes-"));
  });
  afterEach(() => rm(workDir, { recursive: true, force: true }));

  const run = async (code: string, options: LocalExecutorOptions = {}) => {
    await using executor = new LocalCommandLineCodeExecutor({ workDir, ...options });
    return (await executor.executeCodeBlocks([{ language: "sh", code }])).changes;
  };

  /** A look that nobody asked for takes a quarter of a second at most, so on a busy machine it may see nothing. */
  const seen = async (attempt: () => ReturnType<typeof run>): ReturnType<typeof run> => {
    for (;;) {
      const changes = await attempt();
      if (changes?.truncated !== true) return changes;
    }
  };

  it("are told by default, unless `changes` is false", async () => {
    const attempt = async () => {
      await rm(path.join(workDir, "made"), { force: true });
      return run("touch made");
    };
    expect(await seen(attempt)).toEqual({ created: ["made"], changed: [], deleted: [], risky: [] });
    expect(await run("touch more", { changes: false })).toBeUndefined();
  });

  it("are not told for a directory of the executor, unless asked for", async () => {
    await using executor = new LocalCommandLineCodeExecutor();
    const { changes } = await executor.executeCodeBlocks([{ language: "sh", code: "touch made" }]);
    expect(changes).toBeUndefined();
  });

  it("see a file that was changed an instant before, with the same size and time", async () => {
    const attempt = async () => {
      await writeFile(path.join(workDir, "fresh"), "one");
      const { mtimeMs } = await stat(path.join(workDir, "fresh"));
      return run(`printf two > fresh; touch -d @${mtimeMs / 1000} fresh`);
    };
    expect((await seen(attempt))?.changed).toEqual(["fresh"]);
  });

  it("say by default that they are not complete in a large directory, and all if asked to", async () => {
    for (const directory of ["a", "b", "c"]) {
      await mkdir(path.join(workDir, directory));
      const names = Array.from({ length: 400 }, (_, index) => path.join(workDir, directory, String(index)));
      await Promise.all(names.map((name) => writeFile(name, "")));
    }
    expect(await run("touch made")).toMatchObject({ created: [], truncated: true });
    expect(await run("touch other", { changes: true })).toEqual({
      created: ["other"],
      changed: [],
      deleted: [],
      risky: [],
    });
  });

  it("count the file of a block that has a name, and come with a run that timed out", async () => {
    await using executor = new LocalCommandLineCodeExecutor({ workDir, changes: true, timeoutMs: 6000 });
    const { timedOut, changes } = await executor.executeCodeBlocks([
      { language: "sh", code: "touch made; chmod 4755 made; sleep 100" },
    ]);
    expect([timedOut, changes?.created, changes?.risky.length]).toEqual([true, ["made"], 1]);
    const named = await executor.executeCodeBlocks([{ language: "sh", code: "# filename: sub/Makefile\ntrue" }]);
    expect(named.changes?.created).toEqual(["sub", "sub/Makefile"]);
    expect(named.changes?.risky.map((each) => each.path)).toEqual(["sub/Makefile"]);
  });
});
