import assert from "node:assert/strict";
import { type CodeBlock, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { fileFeature, language } from "../needs.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });

async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* pieces(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

interface Content {
  readonly target?: string;
  readonly content?: string;
  /** What the header says. Default: the content's. */
  readonly size?: number;
}

/** One header of an archive as a stranger may write it, with a valid checksum, and its content. */
function entry(path: string, flag: string, given: Content = {}): Buffer {
  const { target = "", content = "" } = given;
  const { size = content.length } = given;
  const block = Buffer.alloc(512);
  block.write(path, 0);
  block.write("0000644\u00000000000\u00000000000\u0000", 100, "latin1");
  block.write(size.toString(8).padStart(11, "0"), 124, "latin1");
  block.write("00000000000", 136, "latin1");
  block.write("        ", 148, "latin1");
  block.write(flag, 156, "latin1");
  block.write(target, 157);
  block.write("ustar\u000000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([block, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

const end = Buffer.alloc(1024);

/** Tar archives out of the workspace and into it. */
export const archives: ConformanceGroup = {
  name: "archives",
  cases: [
    {
      name: "what archive() packs, extract() unpacks: names, content and empty files",
      async run(kit) {
        const { files } = await kit.shared();
        const large = Buffer.alloc(3_000_001, "large ");
        const long = `dir/${"long-name-".repeat(12)}/grüße.txt`;
        await files.write("dir/large.bin", large);
        await files.write(long, "long");
        await files.write("dir/empty", "");
        await files.write("outside.txt", "not packed");
        const packed = await kit.within("archive", bytesOf(files.archive({ path: "dir" })));
        assert.equal(packed.length % 512, 0);
        const receipt = await kit.within("extract", files.extract(pieces(packed), { path: "copy" }));
        assert.deepEqual(receipt, { files: 3, bytes: large.length + 4, incomplete: [] });
        assert.ok(large.equals(await files.read("copy/large.bin")));
        assert.equal(Buffer.from(await files.read(long.replace("dir/", "copy/"))).toString(), "long");
        assert.deepEqual((await files.list("copy")).length, 3);
        await kit.rejects(FileNotFoundError, "archive of nothing", bytesOf(files.archive({ path: "nowhere" })));
        await kit.rejects(InvalidInputError, "archive of a file", bytesOf(files.archive({ path: "outside.txt" })));
      },
    },
    {
      name: "keeps permissions, empty directories and links inside, and leaves out links that lead out",
      needs: [fileFeature("trees"), language("python")],
      async run(kit) {
        const executor = await kit.shared();
        const { files } = executor;
        await files.write("dir/tool.sh", "#!/bin/sh\n", { mode: 0o750 });
        await files.makeDirectory("dir/empty");
        const links = `os.symlink("tool.sh", "dir/link")\nos.symlink("/etc", "dir/out")\nos.symlink("../..", "dir/above")`;
        await kit.succeed(executor, python(`import os\n${links}`));
        const packed = await kit.within("archive", bytesOf(files.archive({ path: "dir" })));
        await kit.within("extract", files.extract(pieces(packed), { path: "a/copy" }));
        assert.deepEqual(
          (await files.list("a", { directories: true })).map(({ path }) => path),
          ["a/copy", "a/copy/empty", "a/copy/tool.sh"],
        );
        assert.equal((await files.stat("a/copy/tool.sh")).mode, 0o750);
        assert.equal((await files.stat("a/copy/link")).linkTarget, "tool.sh");
        const out = files.stat("a/copy/out", { followLinks: false });
        await kit.rejects(FileNotFoundError, "a link that leads out", out);
      },
    },
    {
      name: "unpacks what the tar program of the place packs, and the other way round",
      needs: [fileFeature("trees"), language("python")],
      async run(kit) {
        const executor = await kit.shared();
        const { files } = executor;
        const pack = `
import os, tarfile
os.makedirs("src/deep" + "er" * 60)
open("src/a.txt", "w").write("a" * 1000)
os.link("src/a.txt", "src/same.txt")
open("src/deep" + "er" * 60 + "/b.txt", "w").write("b")
with tarfile.open("made.tar", "w", format=tarfile.GNU_FORMAT) as tar: tar.add("src", ".")`;
        await kit.succeed(executor, python(pack));
        await kit.within("extract", files.extract(files.readStream("made.tar"), { path: "out" }));
        assert.equal((await files.read("out/same.txt")).length, 1000);
        assert.equal(Buffer.from(await files.read(`out/deep${"er".repeat(60)}/b.txt`)).toString(), "b");
        await files.write("back.tar", await bytesOf(files.archive({ path: "out" })));
        const list = `import tarfile\nprint(sorted(m.name.split("/")[-1] for m in tarfile.open("back.tar") if m.isfile()))`;
        assert.equal((await kit.succeed(executor, python(list))).output, "['a.txt', 'b.txt', 'same.txt']\n");
      },
    },
    {
      name: "refuses archives that lead out of the workspace, lie or are incomplete, and changes nothing",
      async run(kit) {
        const { files } = await kit.shared();
        await files.write("kept.txt", "kept");
        const good = entry("good.txt", "0", { content: "good" });
        const refused = async (
          kind: typeof InvalidInputError | typeof WorkspacePathError,
          what: string,
          tar: Buffer,
        ) => {
          await kit.rejects(kind, what, files.extract(pieces(Buffer.concat([good, tar]))));
        };
        const more = Buffer.concat([entry("x", "0", { content: "x" }), end]);
        await refused(WorkspacePathError, "..", Buffer.concat([entry("../out.txt", "0", { content: "x" }), end]));
        await refused(
          WorkspacePathError,
          "absolute",
          Buffer.concat([entry("/etc/out.txt", "0", { content: "x" }), end]),
        );
        await refused(WorkspacePathError, "a link out", Buffer.concat([entry("l", "2", { target: "/etc" }), end]));
        await refused(WorkspacePathError, "a link up", Buffer.concat([entry("a/l", "2", { target: "../../x" }), end]));
        const through = [entry("one", "2", { target: "." }), entry("two", "2", { target: "one/../.." }), end];
        await refused(WorkspacePathError, "a link out through another", Buffer.concat(through));
        const below = [entry("dir", "2", { target: "." }), entry("dir/file", "0", { content: "x" }), end];
        await refused(InvalidInputError, "a file below a link", Buffer.concat(below));
        await refused(InvalidInputError, "a device", Buffer.concat([entry("null", "3"), more]));
        await refused(InvalidInputError, "a pipe", Buffer.concat([entry("pipe", "6"), more]));
        await refused(InvalidInputError, "a sparse file", Buffer.concat([entry("sparse", "S"), more]));
        await refused(
          InvalidInputError,
          "a name of nothing",
          Buffer.concat([entry("h", "1", { target: "none" }), end]),
        );
        await refused(InvalidInputError, "a size that lies", entry("long", "0", { content: "short", size: 1 << 20 }));
        await refused(
          InvalidInputError,
          "a huge size",
          entry("huge", "0", { content: "short", size: 8 * 1024 ** 3 - 1 }),
        );
        await refused(InvalidInputError, "no archive", Buffer.alloc(1024, "no archive"));
        await refused(InvalidInputError, "half a header", Buffer.concat([entry("x", "0")]).subarray(0, 300));
        const limited = files.extract(pieces(Buffer.concat([good, end])), { maxBytes: 3 });
        await kit.rejects(InvalidInputError, "more than maxBytes", limited, /maxBytes/);
        assert.deepEqual(await files.list(), [{ path: "kept.txt", size: 4 }]);
      },
    },
  ],
};
