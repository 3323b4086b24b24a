import { mkdir, mkdtemp, readdir, readFile, readlink, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { MemoryWatch } from "@fenced/executor-testkit";
import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createExecutor, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { pythonImage } from "./support/images.ts";

async function openFiles(): Promise<(string | undefined)[]> {
  const descriptors = await readdir("/proc/self/fd");
  return Promise.all(descriptors.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => undefined)));
}

// A container that somebody else created does not bind `workDir`, so files travel as archives.
describe("files as archives", { ...needs("docker"), timeout: 300_000 }, () => {
  const containerName = `fenced-test-archives-${process.pid}`;
  let workDir: string;
  beforeEach(async () => {
    workDir = await mkdtemp(join(tmpdir(), "fenced-test-"));
    const words = ["--volume", "/workspace", "--network", "none", pythonImage, "sleep", "1000"];
    await docker("run", "--detach", "--init", "--name", containerName, ...words);
  });
  afterEach(async () => {
    await docker("rm", "--force", "--volumes", containerName);
    await rm(workDir, { recursive: true });
  });
  const create = () => createExecutor({ containerName, reuse: true, workDir });

  it("take little memory and none of the block's time, and are named if they do not fit", async () => {
    await using executor = create();
    await executor.start();
    using memory = new MemoryWatch();
    const code = "truncate -s 600M big; truncate -s 50M middle; echo small > small; sleep 1";
    const result = await executor.executeCodeBlocks([{ language: "bash", code }], { timeoutMs: 4000 });
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(result.stderr).toMatch(/not up to date: big \(600 MiB\) did not fit into the 512 MiB/);
    expect(memory.peak()).toBeLessThan(128 * 1_048_576);
    expect((await readdir(workDir)).toSorted()).toEqual(["middle", "small"]);
    expect(await readFile(join(workDir, "small"), "utf8")).toBe("small\n");
    const { stderr } = await run(executor, "bash", "rm big middle");
    expect([stderr, await readdir(workDir)]).toEqual(["", ["small"]]);
  });

  it("whose names are not UTF-8 are left out, and do not take each other's place", async () => {
    await writeFile(Buffer.from(`${workDir}/of the host \xff`, "latin1"), "host");
    await using executor = create();
    const code = "printf one > $'\\xff'; printf two > $'\\xfe'; printf three > 'plain ü'";
    const { stderr, exitCode } = await run(executor, "bash", code);
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/not up to date: files whose names are not UTF-8 cannot be copied \(2\); rename them/);
    expect(await executor.files.list()).toEqual([{ path: "plain ü", size: 5 }]);
    expect((await readdir(workDir, "latin1")).toSorted()).toEqual(["of the host \xff", "plain \xc3\xbc"]);
    const renamed = await run(executor, "bash", "mv $'\\xff' first; mv $'\\xfe' second; cat first second");
    expect([renamed.stdout, renamed.stderr]).toEqual(["onetwo", ""]);
    expect(await readFile(join(workDir, "second"), "utf8")).toBe("two");
  });

  it("that cannot be written to this host's directory do not fail the block", async () => {
    await using executor = create();
    await run(executor, "bash", "mkdir both; touch both/inside");
    const result = await run(executor, "bash", "rm -r both; echo file > both; echo done");
    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
    expect(result.stderr).toMatch(/not up to date/);
  });

  it("that shrink while they are copied cause a clear error, unless they are small", async () => {
    await using executor = create();
    await executor.start();
    const outside = join(workDir, "..", `${basename(workDir)}-uploads`);
    await mkdir(outside);
    const [first, small, large] = ["first", "small", "large"].map((name) => join(outside, name)) as [
      string,
      string,
      string,
    ];
    try {
      for (const [file, size] of [
        [first, 30_000_000],
        [small, 1000],
        [large, 2_000_000],
      ] as const) {
        await writeFile(file, "");
        await truncate(file, size);
      }
      const uploading = executor.files.upload([first, small, large]);
      uploading.catch(() => {});
      // All sizes are known once the first file is open, and the others are opened after it.
      while (!(await openFiles()).includes(first)) await sleep(1);
      await truncate(small, 10);
      await truncate(large, 1_500_000);
      await expect(uploading).rejects.toThrow(/"large" changed while it was copied/);
      const names = (await executor.files.list()).map(({ path, size }) => `${path} ${size}`);
      expect(names.toSorted()).toEqual(["first 30000000", "small 10"]);
      expect(await printed(executor, "bash", "echo next")).toBe("next");
    } finally {
      await rm(outside, { recursive: true });
    }
  });

  it("do not make remove() hang when the code has stopped the supervisor", async () => {
    await using executor = create();
    await executor.files.write("given.txt", "given");
    // The shepherd's parent is the supervisor; stopped once this block has ended.
    const code = '(sleep 1; kill -STOP "$(cut -d" " -f4 /proc/$SHEPHERD/stat)") &';
    await run(executor, "bash", `SHEPHERD=$PPID\n${code}\nsleep 0.1`);
    // Not with `docker exec`, whose own start the code could stop as well.
    while (!/^T/m.test(await docker("top", containerName, "-eo", "stat,pid"))) await sleep(100);
    await expect(executor.files.remove("given.txt")).rejects.toSatisfy(BackendUnavailableError.isInstance);
    expect((await executor.files.list()).map(({ path }) => path)).toEqual(["given.txt"]);
    expect(await printed(executor, "bash", "echo next")).toBe("next");
  });
});
