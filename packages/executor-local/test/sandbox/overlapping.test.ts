import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

describe("a sandbox whose work directory another one can write to", needs("python3", "bash", "bubblewrap"), () => {
  it("has files only in its own directory, whatever the other puts in its place", async () => {
    const directory = await temporaryDirectory();
    const [outerDir, victim] = [path.join(directory, "outer"), path.join(directory, "victim")];
    const innerDir = path.join(outerDir, "inner");
    for (const each of [innerDir, victim]) await mkdir(each, { recursive: true });
    await writeFile(path.join(victim, "secret"), "secret");
    await using outer = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", workDir: outerDir });
    await using inner = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", workDir: innerDir });
    await inner.start();
    const swap = `mv inner moved && ln -s ${victim} inner && echo swapped`;
    expect((await outer.executeCodeBlocks([{ language: "bash", code: swap }])).output).toBe("swapped\n");
    const attempts: readonly (() => Promise<unknown>)[] = [
      () => inner.files.read("secret"),
      () => inner.files.list(),
      () => inner.files.stat("secret"),
      () => inner.files.write("new", "x"),
      () => inner.files.remove("secret"),
      () => inner.executeCodeBlocks([{ language: "python", code: "open('here', 'w')" }]),
      () => inner.executeCodeBlocks([{ language: "bash", code: "# filename: named.sh\ntouch here" }]),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toThrow(/was replaced by something else/);
    // What it sees is what was mounted, whatever its name is now.
    await inner.executeCodeBlocks([{ language: "bash", code: "touch there" }]);
    expect(await readdir(victim)).toEqual(["secret"]);
    const back = "rm inner && mv moved inner && echo back";
    expect((await outer.executeCodeBlocks([{ language: "bash", code: back }])).output).toBe("back\n");
    await inner.files.write("new", "x");
    expect(await readdir(innerDir)).toEqual(["new", "there"]);
  });
});
