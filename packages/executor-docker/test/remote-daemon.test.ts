import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BackendUnavailableError, loadComponent, type CodeExecutor } from "@fenced/core";
import { beginBlock, testCodeExecutor, type ExecutorSubject } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { printed, run } from "./support/create-executor.ts";
import { hostCommand } from "./support/host-command.ts";
import { pythonImage } from "./support/images.ts";
import { startPrivateDaemon, type PrivateDaemon } from "./support/private-daemon.ts";

describe("a daemon with another file system", needs("docker", "root"), () => {
  let daemon: PrivateDaemon;
  let directory = "";
  beforeAll(async () => {
    daemon = await startPrivateDaemon();
    directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  }, 120_000);
  afterAll(async () => {
    await daemon[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  }, 120_000);
  const create = (options = {}) =>
    new DockerCommandLineCodeExecutor({ image: pythonImage, docker: daemon.address, network: "none", ...options });

  const backAgain = async (signal: NodeJS.Signals) => {
    if (signal === "SIGSTOP") {
      daemon.signal("SIGCONT");
    } else {
      await daemon.ended();
      await daemon.start();
    }
  };

  it("gets the files of workDir, and returns what blocks change", async () => {
    const workDir = join(directory, "work");
    await using executor = create({ workDir });
    await executor.files.write("data/in.txt", "in");
    await printed(executor, "bash", "cat data/in.txt > out.txt; echo more >> out.txt; mkdir sub; echo sub > sub/file");
    expect((await readdir(workDir, { recursive: true })).toSorted()).toEqual([
      "data",
      "data/in.txt",
      "out.txt",
      "sub",
      "sub/file",
    ]);
    expect(await readFile(join(workDir, "out.txt"), "utf8")).toBe("inmore\n");
    await printed(executor, "bash", "rm sub/file; echo changed > out.txt");
    expect(await readFile(join(workDir, "out.txt"), "utf8")).toBe("changed\n");
    await executor.stop();
    await writeFile(join(workDir, "added.txt"), "added");
    await executor.start();
    expect(await printed(executor, "bash", "cat added.txt; test -e sub/file || echo gone")).toBe("addedgone");
  });

  it("works with a read-only root file system", async () => {
    await using executor = create({ readOnlyRootFilesystem: true });
    await executor.files.write("in.txt", "in");
    expect(await printed(executor, "bash", "echo out > out.txt; cat in.txt out.txt")).toBe("inout");
  });

  it("rejects a bindDir that it cannot see", async () => {
    const executor = create({ workDir: directory, bindDir: directory });
    await expect(executor.start()).rejects.toThrow(/`bindDir`.*on the daemon's host:/);
  });

  it("rejects a workDir that it cannot see for a session that outlives its program", async () => {
    const options = { keepAliveMs: 60_000, workDir: directory };
    const executor = create(options);
    await expect(executor.start()).rejects.toThrow(
      /`keepAliveMs` needs a `workDir` that the daemon can mount.* Leave `workDir` out/,
    );
    expect(await daemon.docker("ps", "--all", "--quiet")).toBe("");
  });

  it("does not affect a block in a shared directory when it hangs", async () => {
    const workDir = await mkdtemp("/var/tmp/fenced-test-");
    try {
      await using executor = create({ workDir });
      await executor.start();
      daemon.signal("SIGSTOP");
      try {
        const result = await run(executor, "bash", "echo through > made.txt; cat made.txt; sleep 1; cat made.txt");
        expect([result.exitCode, result.output]).toEqual([0, "through\nthrough\n"]);
      } finally {
        daemon.signal("SIGCONT");
      }
    } finally {
      await rm(workDir, { recursive: true });
    }
  });

  it.each(["SIGTERM", "SIGSTOP"] as const)(
    "that gets %s under a block causes a clear error, and the next call works once it is back",
    { timeout: 120_000 },
    async (signal) => {
      await using executor = create();
      await executor.start();
      const { result } = await beginBlock(executor, { language: "bash", code: "echo started; sleep 1000" });
      daemon.signal(signal);
      const error: unknown = await result.catch((reason: unknown) => reason);
      expect(BackendUnavailableError.isInstance(error) && error.message).toMatch(/is lost|did not answer/);
      await backAgain(signal);
      expect(await printed(executor, "bash", "echo back")).toBe("back");
    },
  );

  testCodeExecutor(
    { describe, it, afterAll },
    {
      name: "DockerCommandLineCodeExecutor, with files in a volume,",
      create,
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../src/index.ts") }),
      takesWorkDir: false,
      get hostCommand(): ExecutorSubject["hostCommand"] {
        return [...hostCommand(pythonImage), daemon.address];
      },
    },
    mechanism("files", "workspace"),
  );

  it("that is killed under a block causes a clear error", { timeout: 120_000 }, async () => {
    const executor = create();
    await executor.start();
    const { result } = await beginBlock(executor, { language: "bash", code: "echo started; sleep 1000" });
    daemon.signal("SIGKILL");
    const error: unknown = await result.catch((reason: unknown) => reason);
    expect(BackendUnavailableError.isInstance(error) && error.message).toMatch(/is lost|did not answer/);
    await expect(run(executor, "bash", "echo no")).rejects.toThrow(/No Docker daemon answers/);
    await expect(executor.stop()).rejects.toThrow(/could not be removed.*docker rm --force/s);
  });
});
