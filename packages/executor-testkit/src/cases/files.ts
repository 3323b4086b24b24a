import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { type CodeBlock, type CodeResult, FileNotFoundError, type WorkspaceFiles } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { language as isRun } from "../needs.ts";

const allBytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const large = Uint8Array.from({ length: 5 * 1024 * 1024 }, (_, index) => (index * 31 + (index >> 8)) & 0xff);
const oddName = "with space/grüße 日本 & 'quote'.txt";

/** Unpacks what looks like an archive from Windows: names in another encoding, where the system accepts them. */
const unzipping = python(`
import os
os.makedirs("unzipped")
made = 0
for name, text in ((b"unzipped/\\xb2\\xe2.csv", "one"), (b"unzipped/\\xb2\\xe3.csv", "two"), (b"unzipped/plain.csv", "plain")):
    try:
        with open(name, "w") as file: file.write(text)
        made += 1
    except (OSError, UnicodeError):
        pass
print(made)`);
const counting = python('import os\nprint(len(os.listdir(b"unzipped")))');

/** Files transferred in both directions. */
export const files: ConformanceGroup = {
  name: "files",
  cases: [
    {
      name: "lists nothing at first",
      async run(kit) {
        assert.deepEqual(await kit.within("files.list", (await kit.create()).files.list()), []);
      },
    },
    {
      name: "lists files recursively, with relative paths and sizes, sorted",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        await workspace.write("z.txt", "12345");
        await workspace.write("dir/sub/b.txt", "");
        await workspace.write("dir/a.txt", "äö");
        const expected = [
          { path: "dir/a.txt", size: 4 },
          { path: "dir/sub/b.txt", size: 0 },
        ];
        assert.deepEqual(await workspace.list(), [...expected, { path: "z.txt", size: 5 }]);
        assert.deepEqual(await workspace.list("dir"), expected, "paths stay relative to the workspace");
        await kit.rejects(FileNotFoundError, "list", workspace.list("nowhere"));
      },
    },
    {
      name: "reads back every byte as it was written",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        for (const data of [allBytes, large, new Uint8Array()]) {
          await kit.within("files.write", workspace.write("data.bin", data));
          const back = await kit.within("files.read", workspace.read("data.bin"));
          assert.ok(Buffer.from(back).equals(data), `${data.length} bytes come back unchanged`);
        }
      },
    },
    {
      name: "writes only the bytes of a view, and text as UTF-8",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        await workspace.write("view.bin", allBytes.subarray(10, 20));
        assert.deepEqual([...(await workspace.read("view.bin"))], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
        await workspace.write("text.txt", "grüße 🎈\r\n");
        assert.equal(new TextDecoder().decode(await workspace.read("text.txt")), "grüße 🎈\r\n");
      },
    },
    {
      name: "accepts names with spaces, quotes and unicode",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        await workspace.write(oddName, "odd");
        assert.deepEqual(await workspace.list(), [{ path: oddName, size: 3 }]);
        assert.equal(new TextDecoder().decode(await workspace.read(oddName)), "odd");
        await workspace.remove(oddName);
        assert.deepEqual(await workspace.list(), []);
      },
    },
    {
      name: "reads, writes and removes every name that it lists, even if it is not UTF-8",
      needs: [isRun("python")],
      async run(kit) {
        const { files: workspace, ...executor } = await unusualNames(kit);
        const listed = await workspace.list();
        const texts: string[] = [];
        for (const { path } of listed) texts.push(new TextDecoder().decode(await workspace.read(path)));
        assert.ok(texts.includes("plain"), `${JSON.stringify(listed)} contains the ordinary file`);
        assert.equal(new Set(texts).size, texts.length, `each name leads to a file of its own: ${texts.join()}`);
        for (const { path, size } of listed) {
          assert.equal((await workspace.stat(path)).size, size);
          await workspace.write(path, "rewritten");
        }
        assert.deepEqual(
          await workspace.list(),
          listed.map(({ path }) => ({ path, size: 9 })),
        );
        assert.equal((await executor.count()).output, `${executor.made}\n`, "writing added no file");
        await workspace.remove("unzipped");
        assert.deepEqual(await workspace.list(), []);
      },
    },
    {
      name: "replaces a file with a shorter one",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        await workspace.write("a.txt", "a long text");
        await workspace.write("a.txt", "short");
        assert.equal(new TextDecoder().decode(await workspace.read("a.txt")), "short");
      },
    },
    {
      name: "removes files and whole directories",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        await workspace.write("dir/sub/a.txt", "a");
        await workspace.write("dir/b.txt", "b");
        await workspace.write("c.txt", "c");
        await workspace.remove("c.txt");
        await workspace.remove("dir");
        assert.deepEqual(await workspace.list(), []);
      },
    },
    {
      name: "throws FileNotFoundError for missing files",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        const directory = await kit.directory();
        await workspace.write("there.txt", "there");
        await kit.rejects(FileNotFoundError, "read", workspace.read("missing.txt"));
        await kit.rejects(FileNotFoundError, "read in a directory", workspace.read("no/such/dir.txt"));
        await kit.rejects(FileNotFoundError, "remove", workspace.remove("missing.txt"));
        const download = workspace.download(["there.txt", "missing.txt"], directory);
        await kit.rejects(FileNotFoundError, "download", download);
        const upload = workspace.upload([join(directory, "missing.txt")]);
        await kit.rejects(FileNotFoundError, "upload", upload);
      },
    },
    {
      name: "shares files with the code in both directions",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        await executor.files.write("in/given.txt", "from outside\n");
        const result = await kit.succeedWith(
          executor,
          language.printFile("in/given.txt"),
          language.makeDirectory("out"),
          language.writeFile("out/made.txt", "grüße from inside"),
        );
        assert.equal(result.output, "from outside\n");
        assert.equal(new TextDecoder().decode(await executor.files.read("out/made.txt")), "grüße from inside");
        assert.deepEqual(await executor.files.list("out"), [{ path: "out/made.txt", size: 19 }]);
      },
    },
    {
      name: "does not list the executor's own files",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        await kit.succeed(executor, [language.program(language.print("1")), language.program(language.print("2"))]);
        await kit.run(executor, language.program(language.fail("deliberate")));
        assert.deepEqual(await executor.files.list(), []);
        const running = kit.run(executor, language.program(language.sleep(1500)));
        if (!kit.capabilities.stateful) assert.deepEqual(await executor.files.list(), [], "nor during a run");
        await running;
      },
    },
    {
      name: "uploads files under their own names",
      async run(kit) {
        const executor = await kit.shared();
        const directory = await kit.directory();
        await mkdir(join(directory, "with space"));
        const local = [join(directory, "all.bin"), join(directory, oddName), join(directory, "large.bin")];
        for (const [index, data] of [allBytes, "odd", large].entries()) await writeFile(local[index] ?? "", data);
        await kit.within("files.upload", executor.files.upload(local));
        assert.deepEqual(await executor.files.list(), [
          { path: "all.bin", size: 256 },
          { path: "grüße 日本 & 'quote'.txt", size: 3 },
          { path: "large.bin", size: large.length },
        ]);
        assert.ok(Buffer.from(await executor.files.read("large.bin")).equals(large));
      },
    },
    {
      name: "uploads nothing if one of the files is missing",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        const directory = await kit.directory();
        await writeFile(join(directory, "there.txt"), "there");
        const upload = workspace.upload([join(directory, "there.txt"), join(directory, "missing.txt")]);
        await kit.rejects(FileNotFoundError, "upload", upload);
        assert.deepEqual(await workspace.list(), []);
      },
    },
    {
      name: "downloads files under their relative paths",
      async run(kit) {
        const { files: workspace } = await kit.shared();
        const directory = join(await kit.directory(), "made", "by download");
        await workspace.write("a/b/all.bin", allBytes);
        await workspace.write(oddName, "odd");
        const paths = await kit.within("files.download", workspace.download([oddName, "a/b/all.bin"], directory));
        assert.deepEqual(paths, [join(directory, oddName), join(directory, "a/b/all.bin")]);
        assert.ok(paths.every((path) => isAbsolute(path)));
        assert.ok((await readFile(join(directory, "a/b/all.bin"))).equals(allBytes));
        assert.equal(await readFile(join(directory, oddName), "utf8"), "odd");
      },
    },
  ],
};

function python(code: string): CodeBlock {
  return { language: "python", code };
}

interface UnusualNames {
  readonly files: WorkspaceFiles;
  /** The number of files. */
  readonly made: number;
  /** Counts them again. */
  readonly count: () => Promise<CodeResult>;
}

/** Creates files whose names are not UTF-8, as many as the place accepts. */
async function unusualNames(kit: CaseContext): Promise<UnusualNames> {
  const executor = await kit.shared();
  const made = Number((await kit.succeed(executor, unzipping)).output);
  return { files: executor.files, made, count: () => kit.succeed(executor, counting) };
}
