import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";

/** What the tests use of an executor. */
interface MountingExecutor {
  readonly files: {
    write(file: string, content: string): Promise<void>;
    list(): Promise<readonly { readonly path: string }[]>;
    remove(file: string): Promise<unknown>;
  };
  executeCodeBlocks(
    blocks: readonly { readonly language: string; readonly code: string }[],
  ): Promise<{ readonly exitCode: number; readonly output: string }>;
  stop(): Promise<void>;
}

/**
 * A directory of the machine that code can mount in its workspace. Nothing is left mounted from it when the test ends.
 */
async function somebodysDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-test-"));
  await writeFile(path.join(directory, "precious"), "precious");
  onTestFinished(async () => {
    for (const place of mountedFrom(directory).toReversed()) execFileSync("umount", ["-l", place]);
    await rm(directory, { recursive: true });
  });
  return directory;
}

/** Where a directory, or something below it, is mounted. */
export function mountedFrom(directory: string): string[] {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  return lines
    .filter((line) => (line.split(" ")[3] ?? "").endsWith(path.basename(directory)))
    .map((line) => (line.split(" ")[4] ?? "").replaceAll(String.raw`\040`, " "));
}

/**
 * Defines the tests of an executor whose blocks may mount directories, as root can on its own machine.
 *
 * @param create - creates an executor with a temporary work directory, disposed of when the test ends.
 */
export function testForeignMounts(create: () => MountingExecutor): void {
  test("stop() removes nothing of what code has mounted in its work directory", async () => {
    const directory = await somebodysDirectory();
    const executor = create();
    const code = `pwd; mkdir -p 'in/a b'; mount --bind ${directory} 'in/a b'; ls in/*`;
    const { output } = await executor.executeCodeBlocks([{ language: "bash", code }]);
    const [workspace = "", listed] = output.split("\n");
    expect([listed, mountedFrom(directory)]).toEqual(["precious", [`${workspace}/in/a b`]]);
    await expect(executor.files.remove("in")).rejects.toThrow(/mount/);
    await executor.stop();
    expect(await readdir(directory)).toEqual(["precious"]);
    expect([existsSync(workspace), mountedFrom(directory)]).toEqual([false, []]);
  });

  test("stop() detaches what is stacked on one place", async () => {
    const executor = create();
    const code = `pwd; mkdir in 'in/a b'; mount -t tmpfs none in; mount --make-shared in; mkdir in/deep
      mount -t tmpfs none in/deep; mount -t tmpfs none in; mount --make-shared in; mount -t tmpfs none in; touch in/last`;
    const { output, exitCode } = await executor.executeCodeBlocks([{ language: "bash", code }]);
    const workspace = output.trim();
    const mounts = (): string[] => {
      const places = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
      return places.map((line) => line.split(" ")[4] ?? "").filter((place) => place.startsWith(`${workspace}/in`));
    };
    onTestFinished(() => {
      for (const place of mounts().toReversed()) execFileSync("umount", ["-l", place]);
    });
    expect([exitCode, mounts().length]).toEqual([0, 4]);
    await executor.stop();
    expect([mounts(), existsSync(workspace)]).toEqual([[], false]);
  });

  test("files.write() writes to what is mounted in the work directory", async () => {
    const directory = await somebodysDirectory();
    const executor = create();
    const code = `mkdir same other; touch file; mount --bind ${directory} same; mount -t tmpfs none other
      mount --bind ${directory}/precious file; echo old > other/old; chmod 640 other/old`;
    expect(await executor.executeCodeBlocks([{ language: "bash", code }])).toMatchObject({ exitCode: 0, output: "" });
    for (const file of ["same/new", "other/new", "other/old"]) await executor.files.write(file, "new");
    await executor.files.write("file", "less");
    expect(await readFile(path.join(directory, "precious"), "utf8")).toBe("less");
    await executor.files.write("same/precious", "again");
    const shown = "cat same/new other/new other/old same/precious; stat -c %a other/old";
    const result = await executor.executeCodeBlocks([{ language: "bash", code: shown }]);
    expect(result.output).toBe("newnewnewagain640\n");
    const files = (await executor.files.list()).map((file) => file.path);
    expect(files).toEqual(["file", "other/new", "other/old", "same/new", "same/precious"]);
    expect((await readdir(directory)).toSorted()).toEqual(["new", "precious"]);
  });
}
