import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { WorkspacePathError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { codeFile, onHost, workDir } from "../needs.ts";

const escapes = ["../outside.txt", "a/../../outside.txt", "/tmp/outside.txt", "..", "/"];

/** The blocks' working directory, and its boundaries. */
export const workspace: ConformanceGroup = {
  name: "workspace",
  cases: [
    {
      name: "refuses paths that lead out",
      async run(kit) {
        const { files } = await kit.shared();
        const directory = await kit.directory();
        for (const path of escapes) {
          await kit.rejects(WorkspacePathError, `read ${path}`, files.read(path));
          await kit.rejects(WorkspacePathError, `write ${path}`, files.write(path, "evil"));
          await kit.rejects(WorkspacePathError, `remove ${path}`, files.remove(path));
          await kit.rejects(WorkspacePathError, `list ${path}`, files.list(path));
          await kit.rejects(WorkspacePathError, `download ${path}`, files.download([path], directory));
        }
      },
    },
    {
      name: "refuses paths through a symbolic link that code made",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const outside = await kit.outside(executor);
        const { files } = executor;
        await kit.succeedWith(
          executor,
          language.writeFile(`${outside}/secret.txt`, "secret"),
          language.symlink(outside, "linked"),
          language.symlink(`${outside}/secret.txt`, "linked.txt"),
          language.symlink(`${outside}/new.txt`, "dangling.txt"),
        );
        const directory = await kit.directory();
        await kit.rejects(WorkspacePathError, "read through a directory", files.read("linked/secret.txt"));
        await kit.rejects(WorkspacePathError, "read through a file", files.read("linked.txt"));
        await kit.rejects(WorkspacePathError, "download", files.download(["linked/secret.txt"], directory));
        await kit.rejects(WorkspacePathError, "list", files.list("linked"));
        await kit.rejects(WorkspacePathError, "write through a directory", files.write("linked/new.txt", "evil"));
        await kit.rejects(WorkspacePathError, "write through a file", files.write("linked.txt", "evil"));
        await kit.rejects(WorkspacePathError, "write through a dangling link", files.write("dangling.txt", "evil"));
        await kit.rejects(WorkspacePathError, "remove behind a link", files.remove("linked/secret.txt"));
        const seen = await kit.succeedWith(
          executor,
          language.printFile(`${outside}/secret.txt`),
          language.print(""),
          language.printExists(`${outside}/new.txt`),
        );
        assert.equal(seen.output, "secret\nmissing\n");
      },
    },
    {
      name: "does not follow links out of it when listing",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        await kit.succeedWith(executor, language.symlink("/usr", "linked"), language.symlink(".", "loop"));
        const paths = await kit.paths(executor);
        assert.ok(!paths.some((path) => path.startsWith("linked/") || path.startsWith("loop/")), paths.join(", "));
      },
    },
    {
      name: "allows names that only look like a way out",
      async run(kit) {
        const executor = await kit.shared();
        await executor.files.write("..hidden/..a", "fine");
        await executor.files.write("sub/../b.txt", "fine");
        assert.deepEqual(await kit.paths(executor), ["..hidden/..a", "b.txt"]);
      },
    },
    {
      name: "is the given workDir, which is created if missing and kept by stop()",
      needs: [workDir],
      async run(kit) {
        const { language } = kit;
        const directory = join(await kit.directory(), "made", "here");
        const executor = await kit.create({ workDir: directory });
        await kit.succeedWith(executor, language.writeFile("made.txt", "by the block"));
        await executor.files.write("written.txt", "by files");
        await kit.within("stop()", executor.stop());
        assert.deepEqual((await readdir(directory)).toSorted(), ["made.txt", "written.txt"], "nothing else stays");
        assert.equal(await readFile(join(directory, "made.txt"), "utf8"), "by the block");
      },
    },
    {
      name: "contains the files that were in the given workDir before",
      needs: [workDir],
      async run(kit) {
        const directory = await kit.directory();
        await writeFile(join(directory, "old.txt"), "old\n");
        const executor = await kit.create({ workDir: directory });
        const result = await kit.succeedWith(executor, kit.language.printFile("old.txt"));
        assert.equal(result.output, "old\n");
        assert.deepEqual(await executor.files.list(), [{ path: "old.txt", size: 4 }]);
      },
    },
    {
      name: "makes the caller's user the owner of files that the code creates",
      needs: [workDir],
      async run(kit) {
        const directory = await kit.directory();
        const executor = await kit.create({ workDir: directory });
        await kit.succeedWith(executor, kit.language.writeFile("made.txt", "by the block"));
        assert.equal((await stat(join(directory, "made.txt"))).uid, process.getuid?.() ?? 0);
      },
    },
    {
      name: "keeps the executor's own files if cleanupTempFiles is false",
      needs: [codeFile, workDir],
      async run(kit) {
        const executor = await kit.create({ workDir: await kit.directory(), cleanupTempFiles: false });
        const block = kit.language.program(kit.language.print("kept"));
        const { codeFile: file } = await kit.succeed(executor, block);
        await kit.within("stop()", executor.stop());
        assert.ok((await readFile(file ?? "", "utf8")).includes(block.code.trim()));
      },
    },
    {
      name: "can be shared by two executors at once",
      needs: [workDir],
      async run(kit) {
        const { language } = kit;
        const directory = await kit.directory();
        const [one, other] = [await kit.create({ workDir: directory }), await kit.create({ workDir: directory })];
        const texts = Array.from({ length: 6 }, (_, index) => `call ${index}\n`);
        const results = await Promise.all(
          texts.map((text, index) =>
            kit.succeedWith(index % 2 === 0 ? one : other, language.write(text), language.sleep(100)),
          ),
        );
        assert.deepEqual(
          results.map(({ output }) => output),
          texts,
        );
        await kit.within("stop()", one.stop());
        await kit.succeedWith(other, language.print("lives on"));
        await kit.within("stop()", other.stop());
        assert.deepEqual(await readdir(directory), []);
      },
    },
    {
      name: "is separate for each executor, and deleted by stop()",
      needs: [onHost],
      async run(kit) {
        const { language } = kit;
        const [one, other] = [await kit.create(), await kit.create()];
        await one.files.write("a.txt", "one");
        assert.deepEqual(await other.files.list(), []);
        const { codeFile: file } = await kit.succeedWith(one, language.print("where"));
        await kit.within("stop()", one.stop());
        if (file !== undefined) await assert.rejects(stat(join(file, "..")), "the directory is gone");
        await kit.within("start()", one.start());
        assert.deepEqual(await one.files.list(), [], "a new start has a new workspace");
      },
    },
  ],
};
