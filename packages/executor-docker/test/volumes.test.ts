import { mkdir, mkdtemp, readdir, readFile, readlink, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { MemoryWatch } from "@fenced/executor-testkit";
import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { startForeignContainer } from "./support/foreign-container.ts";
import { nodeImage, pythonImage } from "./support/images.ts";

async function openFiles(): Promise<(string | undefined)[]> {
  const descriptors = await readdir("/proc/self/fd");
  return Promise.all(descriptors.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => undefined)));
}

const containerName = `fenced-test-volume-${process.pid}`;
let workDir: string;
beforeEach(async () => {
  workDir = await mkdtemp(join(tmpdir(), "fenced-test-"));
});
afterEach(async () => {
  await docker("rm", "--force", "--volumes", containerName);
  await rm(workDir, { recursive: true });
});

/** A container that somebody else created does not bind `workDir`, so files travel. */
async function startContainer(image: string, volume = "/workspace", options: readonly string[] = []): Promise<void> {
  await startForeignContainer(containerName, { image, options: [...options, "--volume", volume] });
}
const create = () => createExecutor({ containerName, reuse: true, workDir });
const names = async (executor: DockerCommandLineCodeExecutor) =>
  (await executor.files.list()).map(({ path, size }) => `${path} ${size}`);

describe("files in a volume", { ...needs("docker"), timeout: 300_000 }, () => {
  beforeEach(() => startContainer(pythonImage));

  it("take little memory and none of the block's time, and are named if they do not fit", async () => {
    await using executor = create();
    await executor.start();
    using memory = new MemoryWatch();
    const code = "truncate -s 600M big; truncate -s 50M middle; echo small > small; sleep 1";
    const result = await executor.executeCodeBlocks([{ language: "bash", code }], { timeoutMs: 8000 });
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(result.stderr).toMatch(/not up to date: big \(600 MiB\) did not fit into the 512 MiB/);
    expect(memory.peak()).toBeLessThan(128 * 1_048_576);
    expect((await readdir(workDir)).toSorted()).toEqual(["middle", "small"]);
    expect(await readFile(join(workDir, "small"), "utf8")).toBe("small\n");
    const { stderr } = await run(executor, "bash", "rm big middle");
    expect([stderr, await readdir(workDir)]).toEqual(["", ["small"]]);
  });

  it("count for `maxWorkspaceBytes` even if they are deleted but still open", async () => {
    await using executor = createExecutor({ containerName, reuse: true, workDir, maxWorkspaceBytes: 10_000_000 });
    const code = "exec 3>hidden; rm hidden; head -c 40000000 /dev/zero >&3; sleep 600";
    expect(await run(executor, "bash", code)).toMatchObject({ exitCode: 153 });
  });

  it("may be in another volume that is mounted in it", async () => {
    await docker("rm", "--force", "--volumes", containerName);
    await startContainer(pythonImage, "/workspace", ["--volume", "/workspace/data", "--tmpfs", "/workspace/memory"]);
    await using executor = create();
    for (const file of ["data/deep/a", "data/a", "memory/a"]) await executor.files.write(file, file);
    await executor.files.write("data/a", "again");
    expect(await printed(executor, "bash", "cat data/deep/a data/a memory/a; ls -A")).toBe(
      "data/deep/aagainmemory/adata\nmemory",
    );
    await expect(executor.files.remove("data")).rejects.toThrow(/unmount it/);
    expect(await names(executor)).toEqual(["data/a 5", "data/deep/a 11", "memory/a 8"]);
  });

  it("may have names of any bytes, in both directions", async () => {
    await writeFile(Buffer.from(`${workDir}/of the host \xff`, "latin1"), "host");
    await using executor = create();
    const code = "cat $'of the host \\xff'; printf one > $'\\xff'; printf two > $'\\xfe'; printf three > 'plain ü'";
    expect(await run(executor, "bash", code)).toMatchObject({ stdout: "host", stderr: "", exitCode: 0 });
    expect((await readdir(workDir, "latin1")).toSorted()).toEqual([
      "of the host \xff",
      "plain \xc3\xbc",
      "\xfe",
      "\xff",
    ]);
    expect(await names(executor)).toEqual(["of the host \udcff 4", "plain ü 5", "\udcfe 3", "\udcff 3"]);
    expect(Buffer.from(await executor.files.read("\udcfe")).toString()).toBe("two");
    await executor.files.write("\udcfe", "new");
    await executor.files.remove("\udcff");
    expect(await printed(executor, "bash", "cat $'\\xfe'")).toBe("new");
    expect(await readFile(Buffer.from(`${workDir}/\xfe`, "latin1"), "utf8")).toBe("new");
    expect(await readdir(workDir)).toHaveLength(3);
  });

  it("are copied in hundreds, and only if they have changed", async () => {
    for (let each = 0; each < 100; each += 1) await writeFile(join(workDir, `given ${each}`), "given");
    await using executor = create();
    const code =
      "cat given* | wc -c; for each in $(seq 1 300); do mkdir -p $((each % 7)); echo $each > $((each % 7))/$each; done";
    expect(await run(executor, "bash", code)).toMatchObject({ stdout: "500\n", stderr: "" });
    expect(await readdir(workDir, { recursive: true })).toHaveLength(100 + 300 + 7);
    expect(await readFile(join(workDir, "3/10"), "utf8")).toBe("10\n");
    await writeFile(join(workDir, "given 7"), "changed on this host");
    // The same size, and at once.
    expect(await printed(executor, "bash", "echo 01 > 3/10; rm 4/11; touch 'given 8'")).toBe("");
    expect(await readFile(join(workDir, "3/10"), "utf8")).toBe("01\n");
    expect(await readFile(join(workDir, "given 7"), "utf8")).toBe("changed on this host");
    expect(await readdir(join(workDir, "4"))).not.toContain("11");
  });

  it("that cannot be written to this host's directory do not fail the block", async () => {
    await using executor = create();
    await run(executor, "bash", "mkdir both; touch both/inside");
    const result = await run(executor, "bash", "rm -r both; echo file > both; echo done");
    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
    expect(result.stderr).toMatch(/not up to date/);
  });

  it("stay on this host if the code makes their directory unreadable", async () => {
    await docker("rm", "--force", "--volumes", containerName);
    await startContainer(pythonImage, "/workspace", ["--cap-drop", "ALL"]);
    await mkdir(join(workDir, "data/deep"), { recursive: true });
    for (const file of ["data/deep/file", "data/file", "gone"]) await writeFile(join(workDir, file), "of the user");
    await using executor = create();
    const result = await run(executor, "bash", "chmod 000 data; rm gone; echo new > made");
    expect(result.stderr).toMatch(/not up to date: data cannot be read, so nothing there was copied or removed/);
    expect(await readFile(join(workDir, "data/deep/file"), "utf8")).toBe("of the user");
    expect((await readdir(workDir)).toSorted()).toEqual(["data", "made"]);
    expect(await run(executor, "bash", "chmod 700 data; rm data/file")).toMatchObject({ stderr: "", exitCode: 0 });
    expect(await readdir(join(workDir, "data"))).toEqual(["deep"]);
  });

  it("that shrink while they are sent cause a clear error", async () => {
    await using executor = create();
    await executor.files.write("shrunk", "old content");
    const outside = join(workDir, "..", `${basename(workDir)}-uploads`);
    await mkdir(outside);
    const [first, shrunk] = [join(outside, "first"), join(outside, "shrunk")];
    try {
      for (const file of [first, shrunk]) await writeFile(file, Buffer.alloc(30_000_000));
      const uploading = executor.files.upload([first, shrunk]);
      uploading.catch(() => {});
      // All sizes are known once the first file is open, and the others are opened after it.
      while (!(await openFiles()).includes(first)) await sleep(1);
      await truncate(shrunk, 1_500_000);
      await expect(uploading).rejects.toThrow(/"shrunk" changed while it was being sent/);
      expect(await names(executor)).toEqual(["first 30000000", "shrunk 11"]);
      expect(await printed(executor, "bash", "cat shrunk")).toBe("old content");
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
    const problem = await executor.files.remove("given.txt").catch((error: unknown) => error);
    // On a slow machine, the executor has noticed by now and uses a new container.
    expect(problem === undefined || BackendUnavailableError.isInstance(problem)).toBe(true);
    expect((await executor.files.list()).map(({ path }) => path)).toEqual(problem === undefined ? [] : ["given.txt"]);
    expect(await printed(executor, "bash", "echo next")).toBe("next");
  });
});

describe("a volume", { ...needs("docker"), timeout: 120_000 }, () => {
  it("that is full keeps the old content of a file", async () => {
    const volume = `${containerName}-small`;
    await docker("volume", "create", "-o", "type=tmpfs", "-o", "device=tmpfs", "-o", "o=size=2m,mode=1777", volume);
    try {
      await startContainer(pythonImage, `${volume}:/workspace`);
      const executor = createExecutor({ containerName, reuse: true });
      await executor.files.write("kept.txt", "old content");
      await expect(executor.files.write("kept.txt", new Uint8Array(3_000_000))).rejects.toThrow(/the disk is full/);
      expect(Buffer.from(await executor.files.read("kept.txt")).toString()).toBe("old content");
      expect(await names(executor)).toEqual(["kept.txt 11"]);
      // Nothing is left of the attempt.
      expect(await printed(executor, "bash", "ls -A | grep -v '[.]sh$'; df --output=pcent . | tail -n 1")).toMatch(
        /^kept.txt\s+\d%$/,
      );
      await executor.stop();
    } finally {
      await docker("rm", "--force", containerName);
      await docker("volume", "rm", volume);
    }
  });

  it("needs Python in the image, and says so", async () => {
    await startContainer(nodeImage);
    await expect(create().start()).rejects.toThrow(
      /^`workDir` cannot be mounted into the container.* Python 3.8 or later/,
    );
    const kept = createExecutor({ image: nodeImage, stopContainer: false });
    await expect(kept.start()).rejects.toThrow(/Python 3.8 or later.* set `workDir`/);
    expect(await docker("ps", "--all", "--quiet", "--filter", `name=${kept.containerName}`)).toBe("");
  });
});
