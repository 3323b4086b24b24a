import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import type { LocalExecutorOptions } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { fill, smallDisk } from "@fenced/test-support/small-disk";
import { describe, expect, test } from "vitest";
import { executorWith } from "./support/local-executor.ts";

const kinds: readonly (readonly [string, LocalExecutorOptions])[] = [
  ["without a sandbox", {}],
  ["with waiting interpreters", { warm: {} }],
  ["in a sandbox", { isolation: "os-sandbox" }],
];

describe.each(kinds)("a full disk, %s", needs("root", "python3", "bash", "node", "bubblewrap"), (_, options) => {
  test("neither destroys a file nor keeps blocks from making room", async () => {
    const workDir = await smallDisk();
    const executor = executorWith({ ...options, workDir });
    await executor.files.write("kept.txt", "the old content");
    fill(workDir);
    const large = new Uint8Array(20_000);
    await expect(executor.files.write("kept.txt", large)).rejects.toThrow(/"kept.txt": the disk is full.*files.remove/);
    await expect(executor.files.write("kept.txt", large)).rejects.toThrow(BackendUnavailableError);
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
    const executor = executorWith({ ...options, workDir });
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
});

test("a copy on this host keeps its old content until the new one is complete", needs("root", "bash"), async () => {
  const disk = await smallDisk();
  const copy = path.join(disk, "a.bin");
  await writeFile(copy, "the old content");
  const executor = executorWith();
  await executor.files.write("a.bin", new Uint8Array(1_000_000));
  await expect(executor.files.download(["a.bin"], disk)).rejects.toThrow(/ENOSPC|full/);
  expect(await readFile(copy, "utf8")).toBe("the old content");
});
