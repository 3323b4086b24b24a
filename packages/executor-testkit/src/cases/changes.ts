import assert from "node:assert/strict";
import { type CodeBlock, InvalidInputError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { fileFeature, language } from "../needs.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });

/** `result.changes`. */
export const changes: ConformanceGroup = {
  name: "changes",
  cases: [
    {
      name: "are refused where they cannot be known",
      async run(kit) {
        const knows = kit.capabilities.files?.includes("trees") === true;
        const executor = await kit.create({ changes: true });
        const ran = executor.executeCodeBlocks([{ language: kit.capabilities.languages[0] ?? "", code: "" }]);
        if (knows) assert.ok((await ran).changes);
        else await kit.rejects(InvalidInputError, "the run", ran, /changes/);
      },
    },
    {
      name: "name what a run created, changed and deleted, also if it sets back times and keeps sizes",
      needs: [fileFeature("trees"), language("python")],
      async run(kit) {
        const executor = await kit.create({ changes: true });
        for (const name of ["same", "hidden", "mode", "gone", "dir/below"]) await executor.files.write(name, "before");
        const code = `
import os
status = os.stat("hidden")
with open("hidden", "r+") as file: file.write("AFTER!")
os.utime("hidden", ns=(status.st_atime_ns, status.st_mtime_ns))
os.chmod("mode", 0o600 if os.stat("mode").st_mode & 0o77 else 0o644)
os.remove("gone")
os.makedirs("new/deep")
open("new/deep/file.txt", "w").close()
os.symlink("same", "link")
open("dir/created", "w").close()
open("short-lived", "w").close()
os.remove("short-lived")
`;
        const result = await kit.succeed(executor, python(code));
        assert.deepEqual(result.changes, {
          created: ["dir/created", "link", "new", "new/deep", "new/deep/file.txt"],
          changed: ["hidden", "mode"],
          deleted: ["gone"],
          risky: [],
        });
        const { changes: none } = await kit.succeed(executor, python("print(open('hidden').read())"));
        assert.deepEqual(none, { created: [], changed: [], deleted: [], risky: [] });
      },
    },
    {
      name: "tell of files that others run later, with the reason, also after a run that failed",
      needs: [fileFeature("trees"), language("python")],
      async run(kit) {
        const executor = await kit.create({ changes: true });
        const code = `
import os
os.makedirs("repo/.git/hooks")
for name in ["repo/.git/hooks/pre-commit", "repo/.git/config", "sub/package.json", ".envrc", "notes.txt"]:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").close()
os.symlink("/etc", "outside")
raise SystemExit(3)
`;
        const result = await executor.executeCodeBlocks([python(code)]);
        assert.equal(result.exitCode, 3, result.output);
        const risky = result.changes?.risky ?? [];
        assert.deepEqual(
          risky.map(({ path }) => path),
          [".envrc", "outside", "repo/.git/config", "repo/.git/hooks/pre-commit", "sub/package.json"],
        );
        for (const { reason } of risky) assert.match(reason, /^[A-Z].*\.$/);
        assert.equal(result.changes?.truncated, undefined);
      },
    },
    {
      name: "do not say that nothing is there in a directory that code made unreadable",
      needs: [fileFeature("trees"), language("python")],
      async run(kit) {
        const executor = await kit.create({ changes: true });
        await executor.files.write("kept/file", "");
        const code = `
import os
os.makedirs("hidden")
open("hidden/Makefile", "w").close()
os.makedirs("listed")
open("listed/file", "w").close()
open("seen", "w").close()
os.chmod("hidden", 0)
os.chmod("kept", 0)
os.chmod("listed", 0o444)
`;
        const { changes: found } = await kit.succeed(executor, python(code));
        assert.ok(found);
        // Who looks may be allowed to look at everything.
        const risky = found.risky.map(({ path }) => path);
        assert.deepEqual(found.truncated ? found.deleted : risky, found.truncated ? [] : ["hidden/Makefile"]);
        assert.ok(found.created.includes("seen"));
        assert.ok(!found.deleted.includes("kept/file"));
        await executor.executeCodeBlocks([
          python('import os\nos.chmod("hidden", 0o700)\nos.chmod("kept", 0o700)\nos.chmod("listed", 0o700)'),
        ]);
      },
    },
  ],
};
