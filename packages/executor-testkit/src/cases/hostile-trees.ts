import assert from "node:assert/strict";
import type { CodeBlock } from "@fenced/core";
import type { ConformanceGroup, Need } from "../conformance-case.ts";
import { language } from "../needs.ts";
import { settles } from "../observe/settles.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });

/** Whatever starts and ends blocks runs where the code does, and is not this program or its server. */
const supervised: Need = ({ capabilities, subject }) =>
  capabilities.isolation === "container" || capabilities.isolation === "os-sandbox" || subject.live === true
    ? undefined
    : "what starts the blocks may be this program itself";

/** Extremely deep directories, and a stopped supervisor. */
export const hostileTrees: ConformanceGroup = {
  name: "hostile trees and processes",
  cases: [
    {
      name: "a tree of 2,100 levels can be listed and removed, or is refused, and makes nothing hang",
      needs: [language("python")],
      async run(kit) {
        const executor = await kit.create();
        const code = `import os\nhere = os.getcwd()\nfor level in range(2100):\n    os.mkdir("d"); os.chdir("d")\nopen("f", "w").close()\nos.chdir(here)`;
        const made = await kit.run(executor, python(code));
        // A file system may refuse such a deep tree; whatever exists then must be removed like anything else.
        const refused = made.exitCode !== 0;
        const files = await settles(kit, "files.list", executor.files.list());
        if (files !== undefined && !refused) assert.equal(files.length, 1);
        await settles(kit, "files.remove", executor.files.remove("d"));
        const again = await kit.run(executor, python(code.replaceAll('"d"', '"e"')));
        assert.equal(again.exitCode !== 0, refused, again.output);
        await kit.within("stop()", executor.stop());
      },
    },
    {
      name: "a directory of 1,200 files is listed completely",
      needs: [language("python")],
      async run(kit) {
        const executor = await kit.create();
        await kit.succeed(
          executor,
          python(`import os\nos.mkdir("wide")\nfor number in range(1200): open("wide/%d" % number, "w").close()`),
        );
        assert.equal((await kit.within("files.list", executor.files.list("wide"))).length, 1200);
        await kit.within("files.remove", executor.files.remove("wide"));
        assert.deepEqual(await executor.files.list(), []);
      },
    },
    {
      name: "a stopped supervisor makes no call hang",
      needs: [language("python"), supervised],
      async run(kit) {
        const executor = await kit.create();
        await executor.files.write("a.txt", "a");
        const code = `import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(0.2)`;
        const run = executor.executeCodeBlocks([python(code)], { timeoutMs: 2000 });
        await settles(kit, "executeCodeBlocks", run);
        await settles(kit, "files.read", executor.files.read("a.txt"));
        await settles(kit, "files.remove", executor.files.remove("a.txt"));
        await kit.within("stop()", executor.stop());
      },
    },
  ],
};
