import assert from "node:assert/strict";
import { InvalidInputError, type CodeBlock, type CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { language } from "../needs.ts";

const mebibyte = 1_048_576;
const python = (code: string): CodeBlock => ({ language: "python", code });

/** Writes endlessly, in files of one mebibyte, at a pace that spares the host's disk. */
const filling = python(`
import time
print("filling", flush=True)
number = 0
while True:
    with open("part%d" % number, "wb") as file: file.write(b"x" * 1048576)
    number += 1
    time.sleep(0.1)
`);

/** Limits on the disk space that code can use. */
export const workspaceLimit: ConformanceGroup = {
  name: "workspace limit",
  cases: [
    {
      name: "maxWorkspaceBytes ends a program that fills the disk and says why, or start() rejects the option",
      needs: [language("python")],
      async run(kit) {
        const executor = await limited(kit);
        if (!executor) return;
        const result = await kit.run(executor, filling);
        assert.deepEqual([result.exitCode, result.timedOut, result.stdout], [153, false, "filling\n"]);
        assert.match(result.stderr, /exceed the limit of 8 MiB.*Remove files/);
        const size = (await executor.files.list()).reduce((sum, file) => sum + file.size, 0);
        assert.ok(size > 7 * mebibyte && size < 512 * mebibyte, `${size} bytes were written`);
        const clean = "import glob, os\nfor name in glob.glob('part*'): os.remove(name)\nprint('clean')";
        assert.equal((await kit.succeed(executor, python(clean))).output, "clean\n");
        await kit.succeedWith(executor, kit.language.writeFile("small.txt", "small"));
      },
    },
    {
      name: "maxWorkspaceBytes also applies to a program that ends before its files are measured",
      needs: [language("python")],
      async run(kit) {
        const executor = await limited(kit);
        if (!executor) return;
        const result = await kit.run(
          executor,
          python(`open("large", "wb").write(b"x" * ${20 * mebibyte})\nprint("written")`),
        );
        assert.equal(result.exitCode, 153);
        assert.match(result.stderr, /exceed the limit of 8 MiB/);
      },
    },
    {
      name: "maxWorkspaceBytes counts files below directories whose names are not UTF-8",
      needs: [language("python")],
      async run(kit) {
        const executor = await limited(kit);
        if (!executor) return;
        const code = `
import os
try: os.mkdir(b"hidden\\xff")
except (OSError, UnicodeError): raise SystemExit(153)
with open(b"hidden\\xff/large\\xff", "wb") as file: file.write(b"x" * ${20 * mebibyte})`;
        assert.equal((await kit.run(executor, python(code))).exitCode, 153);
      },
    },
  ],
};

/** Creates an executor with a limit of 8 MiB; returns `undefined` if it reports that it cannot enforce it. */
async function limited(kit: CaseContext): Promise<CodeExecutor | undefined> {
  const make = async (): Promise<CodeExecutor> => {
    const executor = await kit.create({ maxWorkspaceBytes: 8 * mebibyte });
    await kit.within("start()", executor.start());
    return executor;
  };
  return make().catch((error: unknown) => {
    if (!InvalidInputError.isInstance(error)) throw error;
    assert.match(error.message, /maxWorkspaceBytes/);
    return undefined;
  });
}
