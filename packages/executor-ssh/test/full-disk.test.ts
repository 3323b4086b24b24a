import { readFile } from "node:fs/promises";
import path from "node:path";
import { needs } from "@fenced/test-support";
import { fill, smallDisk } from "@fenced/test-support/small-disk";
import { describe, expect, test } from "vitest";
import { create } from "./support/server.ts";

describe.each([
  ["with cold blocks", {}],
  ["with waiting interpreters", { warm: {} }],
])("a full disk on the other host, %s", needs("ssh", "root", "python3", "bash"), (_, options) => {
  test("neither destroys a file nor keeps blocks from making room", async () => {
    const workDir = await smallDisk();
    const executor = create({ ...options, workDir });
    await executor.files.write("kept.txt", "the old content");
    fill(workDir);
    const large = new Uint8Array(20_000);
    await expect(executor.files.write("kept.txt", large)).rejects.toThrow(/"kept.txt": the disk is full.*files.remove/);
    expect(await readFile(path.join(workDir, "kept.txt"), "utf8")).toBe("the old content");
    const blocks = [
      { language: "python", code: "import os\nprint(sorted(os.listdir()))" },
      { language: "bash", code: 'read -r line; echo "$line"; rm filler' },
    ];
    const { exitCode, output } = await executor.executeCodeBlocks(blocks, { stdin: "input\n" });
    expect([exitCode, output]).toEqual([0, "['filler', 'kept.txt']\ninput\n"]);
    await executor.files.write("kept.txt", "new");
    expect(await readFile(path.join(workDir, "kept.txt"), "utf8")).toBe("new");
  });

  test("fails a block that has to be saved, with a sentence, and keeps the session", async () => {
    const workDir = await smallDisk();
    const executor = create({ ...options, workDir });
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
