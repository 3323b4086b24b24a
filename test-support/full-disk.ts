import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { fill, smallDisk } from "./small-disk.ts";

/** What the tests use of an executor. */
interface ExecutorOnDisk {
  readonly files: {
    write(file: string, content: string | Uint8Array): Promise<void>;
    list(): Promise<readonly { readonly path: string }[]>;
    remove(file: string): Promise<unknown>;
  };
  start(): Promise<void>;
  executeCodeBlocks(
    blocks: readonly { readonly language: string; readonly code: string }[],
    options?: { readonly stdin: string },
  ): Promise<{ readonly exitCode: number; readonly output: string }>;
}

/**
 * Defines the tests of an executor whose work directory is full. They need root, Python, bash and Node.
 *
 * @param create - creates an executor that is disposed of when the test ends.
 */
export function testFullDisk(create: (options: { readonly workDir: string }) => ExecutorOnDisk): void {
  test("neither destroys a file nor keeps blocks from making room", async () => {
    const workDir = await smallDisk();
    const executor = create({ workDir });
    await executor.files.write("kept.txt", "the old content");
    fill(workDir);
    const large = new Uint8Array(20_000);
    await expect(executor.files.write("kept.txt", large)).rejects.toMatchObject({
      name: "BackendUnavailableError",
      message: expect.stringMatching(/"kept.txt": the disk is full.*files.remove/),
    });
    expect(await readFile(path.join(workDir, "kept.txt"), "utf8")).toBe("the old content");
    expect((await executor.files.list()).map((file) => file.path)).toEqual(["filler", "kept.txt"]);
    const blocks = [
      { language: "python", code: "import os, sys\nprint(os.path.samefile(sys.path[0] or '.', os.getcwd()))" },
      { language: "javascript", code: "console.log(require('node:fs').readdirSync('.').join())" },
      { language: "bash", code: 'read -r line; echo "$line"; rm filler' },
    ];
    const { exitCode, output } = await executor.executeCodeBlocks(blocks, { stdin: "input\n" });
    expect([exitCode, output]).toEqual([0, "True\nfiller,kept.txt\ninput\n"]);
    await executor.files.write("kept.txt", "new");
    expect(await readFile(path.join(workDir, "kept.txt"), "utf8")).toBe("new");
  });

  test("fails a block that has to be saved, with a sentence, and keeps the session", async () => {
    const workDir = await smallDisk();
    const executor = create({ workDir });
    await executor.start();
    fill(workDir);
    const code = `# filename: saved.py\nprint(1)\n#${" ".repeat(20_000)}`;
    const { exitCode, output } = await executor.executeCodeBlocks([{ language: "python", code }]);
    expect([exitCode, output]).toEqual([
      1,
      expect.stringMatching(/"saved.py": the disk is full.*Remove what is not needed/),
    ]);
    await executor.files.remove("filler");
    expect((await executor.executeCodeBlocks([{ language: "python", code }])).output).toBe("1\n");
  });
}
