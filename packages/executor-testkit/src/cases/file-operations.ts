import assert from "node:assert/strict";
import { type CodeBlock, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { fileFeature, language } from "../needs.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });

async function text(content: Promise<Uint8Array>): Promise<string> {
  return new TextDecoder().decode(await content);
}

/** What `files` can do with directories, permissions and links. */
export const fileOperations: ConformanceGroup = {
  name: "file operations",
  cases: [
    {
      name: "are refused with InvalidInputError where capabilities.files does not list them",
      async run(kit) {
        const { files } = await kit.shared();
        const can = kit.capabilities.files ?? [];
        await files.write("a.txt", "a");
        if (!can.includes("directories")) {
          await kit.rejects(InvalidInputError, "move", files.move("a.txt", "b.txt"), /capabilities\.files/);
          await kit.rejects(InvalidInputError, "makeDirectory", files.makeDirectory("d"), /capabilities\.files/);
        }
        if (!can.includes("modes")) {
          await kit.rejects(
            InvalidInputError,
            "write",
            files.write("a.txt", "b", { mode: 0o700 }),
            /capabilities\.files/,
          );
        }
        if (!can.includes("links")) {
          const stat = files.stat("a.txt", { followLinks: false });
          await kit.rejects(InvalidInputError, "stat", stat, /capabilities\.files/);
        }
        assert.equal(await text(files.read("a.txt")), "a");
        await kit.rejects(InvalidInputError, "write", files.write("a.txt", "b", { mode: 0o10_000 }), /mode/);
      },
    },
    {
      name: "list() returns directories, and one level only, if asked to",
      async run(kit) {
        const { files } = await kit.shared();
        await files.write("dir/sub/a.txt", "a");
        await files.write("dir/b.txt", "bb");
        await files.write("c.txt", "ccc");
        const file = (path: string, size: number) => ({ path, type: "file", size });
        const directory = (path: string) => ({ path, type: "directory", size: 0 });
        assert.deepEqual(await files.list(undefined, { directories: true }), [
          file("c.txt", 3),
          directory("dir"),
          file("dir/b.txt", 2),
          directory("dir/sub"),
          file("dir/sub/a.txt", 1),
        ]);
        assert.deepEqual(await files.list("dir", { directories: true, recursive: false }), [
          file("dir/b.txt", 2),
          directory("dir/sub"),
        ]);
        assert.deepEqual(await files.list(".", { recursive: false }), [{ path: "c.txt", size: 3 }]);
      },
    },
    {
      name: "makeDirectory() creates a directory and its parents, and leaves one that exists",
      needs: [fileFeature("directories")],
      async run(kit) {
        const { files } = await kit.shared();
        await kit.within("makeDirectory", files.makeDirectory("a/b/c"));
        await files.write("a/b/c/file.txt", "kept");
        await files.makeDirectory("a/b/c");
        assert.equal(await text(files.read("a/b/c/file.txt")), "kept");
        assert.equal((await files.stat("a/b")).type, "directory");
        await kit.rejects(InvalidInputError, "makeDirectory at a file", files.makeDirectory("a/b/c/file.txt"));
        await kit.rejects(WorkspacePathError, "makeDirectory outside", files.makeDirectory("../outside"));
      },
    },
    {
      name: "move() renames files and directories, creates parents and replaces a file, but never a directory",
      needs: [fileFeature("directories")],
      async run(kit) {
        const { files } = await kit.shared();
        await files.write("a.txt", "a");
        await files.write("dir/b.txt", "b");
        await files.write("old.txt", "old");
        await kit.within("move", files.move("a.txt", "new/parents/a.txt"));
        await files.move("dir", "moved/dir");
        await files.move("new/parents/a.txt", "old.txt");
        assert.deepEqual(await files.list(), [
          { path: "moved/dir/b.txt", size: 1 },
          { path: "old.txt", size: 1 },
        ]);
        assert.equal(await text(files.read("old.txt")), "a");
        await kit.rejects(FileNotFoundError, "move of nothing", files.move("a.txt", "c.txt"));
        await kit.rejects(InvalidInputError, "move onto a directory", files.move("old.txt", "moved"));
        await kit.rejects(InvalidInputError, "move of a directory onto a file", files.move("moved", "old.txt"));
        await kit.rejects(InvalidInputError, "move into itself", files.move("moved", "moved/dir/deeper"));
        await kit.rejects(InvalidInputError, "move of the workspace", files.move(".", "there"));
        await kit.rejects(WorkspacePathError, "move outside", files.move("old.txt", "../outside.txt"));
        assert.equal(await text(files.read("old.txt")), "a");
      },
    },
    {
      name: "write() and writeStream() set permissions, which stat() returns and another write keeps",
      needs: [fileFeature("modes"), language("python")],
      async run(kit) {
        const executor = await kit.shared();
        const { files } = executor;
        await files.write("tool.sh", "#!/bin/sh\n", { mode: 0o750 });
        const writer = files.writeStream("streamed.sh", { mode: 0o700 }).getWriter();
        await writer.write(Buffer.from("#!/bin/sh\n"));
        await writer.close();
        assert.equal((await files.stat("tool.sh")).mode, 0o750);
        await files.write("tool.sh", "#!/bin/sh\necho\n");
        assert.equal((await files.stat("tool.sh")).mode, 0o750, "another write keeps them");
        assert.equal((await files.stat("streamed.sh")).mode, 0o700);
        const seen = "import os\nfor name in ('tool.sh', 'streamed.sh'): print(oct(os.stat(name).st_mode & 0o777))";
        assert.equal((await kit.succeed(executor, python(seen))).output, "0o750\n0o700\n");
      },
    },
    {
      name: "stat() says where a link leads, and follows it only inside the workspace; move() renames the link itself",
      needs: [fileFeature("links"), fileFeature("directories"), language("python")],
      async run(kit) {
        const executor = await kit.shared();
        const { files } = executor;
        await files.write("dir/file.txt", "12345");
        await kit.succeed(
          executor,
          python(
            `import os\nos.symlink("dir/file.txt", "link")\nos.symlink("/etc/passwd", "out")\nos.symlink("/etc", "dir/etc")`,
          ),
        );
        const followed = await files.stat("link");
        assert.deepEqual([followed.type, followed.size, followed.linkTarget], ["file", 5, "dir/file.txt"]);
        const itself = await files.stat("link", { followLinks: false });
        assert.deepEqual([itself.type, itself.linkTarget], ["link", "dir/file.txt"]);
        assert.equal((await files.stat("dir/file.txt", { followLinks: false })).linkTarget, undefined);
        assert.equal((await files.stat("out", { followLinks: false })).linkTarget, "/etc/passwd");
        await kit.rejects(WorkspacePathError, "stat through a link that leads out", files.stat("out"));
        const beyond = files.stat("dir/etc/passwd", { followLinks: false });
        await kit.rejects(WorkspacePathError, "stat below a link that leads out", beyond);
        await kit.rejects(WorkspacePathError, "move from outside", files.move("dir/etc/passwd", "mine"));
        await kit.rejects(WorkspacePathError, "move to outside", files.move("dir/file.txt", "dir/etc/mine"));
        await kit.rejects(WorkspacePathError, "makeDirectory outside", files.makeDirectory("dir/etc/mine"));
        await files.move("out", "dir/moved");
        assert.equal((await files.stat("dir/moved", { followLinks: false })).linkTarget, "/etc/passwd");
      },
    },
  ],
};
