import assert from "node:assert/strict";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import type { FixtureLanguage } from "../languages/fixture-language.ts";
import { knownLanguages } from "../languages/known-languages.ts";
import { language as isRun } from "../needs.ts";

const aliases: Readonly<Record<string, readonly string[]>> = {
  python: ["py", "python3", "PYTHON", "Py"],
  javascript: ["js", "node", "mjs", "JavaScript", "JS"],
  sh: ["shell", "SH", "Shell"],
  bash: ["Bash", "BASH"],
};

const basics = (language: FixtureLanguage): ConformanceCase => ({
  name: `runs ${language.name}`,
  needs: [isRun(language.name)],
  async run(kit) {
    const executor = await kit.shared();
    const result = await kit.succeed(
      executor,
      language.program(language.print("grüße 🎈"), language.writeFile("made.txt", "by the block")),
    );
    assert.equal(result.stdout, "grüße 🎈\n");
    assert.deepEqual(await executor.files.list(), [{ path: "made.txt", size: 12 }]);
    const failure = await kit.run(executor, language.program(language.fail("deliberate")));
    assert.notEqual(failure.exitCode, 0);
    assert.match(failure.output, /deliberate/);
  },
});

const names = (language: FixtureLanguage): ConformanceCase => ({
  name: `accepts the other names of ${language.name}, in any case`,
  needs: [isRun(language.name)],
  async run(kit) {
    const executor = await kit.shared();
    const { code } = language.program(language.print("understood"));
    const blocks = (aliases[language.name] ?? []).map((alias) => ({ language: alias, code }));
    const result = await kit.succeed(executor, blocks);
    assert.equal(result.output, "understood\n".repeat(blocks.length));
  },
});

/** For a language without fixture programs in the suite: code that prints 42. */
const snippet = (name: string, spellings: readonly string[], source: string): ConformanceCase => ({
  name: `runs ${name}`,
  needs: [isRun(name)],
  async run(kit) {
    const blocks = spellings.map((spelling) => ({ language: spelling, code: source }));
    const result = await kit.succeed(await kit.shared(), blocks);
    assert.equal(result.stdout, "42\n".repeat(spellings.length));
  },
});

/** What counts as a language, and what happens to a block in an unknown one. */
export const languages: ConformanceGroup = {
  name: "languages",
  cases: [
    ...knownLanguages.map(basics),
    ...knownLanguages.map(names),
    snippet("typescript", ["typescript", "ts", "TS"], "const answer: number = 6 * 7;\nconsole.log(answer);\n"),
    snippet("pwsh", ["pwsh", "powershell", "ps1", "PowerShell"], '[Console]::Out.Write("$(6 * 7)`n")\n'),
    {
      name: "ignores a byte order mark before the code",
      async run(kit) {
        const executor = await kit.shared();
        for (const language of knownLanguages.filter(({ name }) => kit.capabilities.languages.includes(name))) {
          const { code } = language.program(language.print("one"), language.print("two"));
          const block = { language: language.name, code: `\uFEFF${code.replaceAll("\n", "\r\n")}` };
          assert.equal((await kit.succeed(executor, block)).output, "one\ntwo\n", language.name);
        }
      },
    },
    {
      name: "runs a shell block in bash if its first line or its language asks for that, or says that there is no bash",
      needs: [isRun("sh")],
      async run(kit) {
        const executor = await kit.shared();
        const hasBash = kit.capabilities.languages.includes("bash");
        const bashOnly = "list=(one two)\necho ${list[1]}\n";
        for (const line of ["#!/bin/bash", "#!/usr/bin/env bash"]) {
          const block = { language: "sh", code: `${line}\n${bashOnly}` };
          if (hasBash) assert.equal((await kit.succeed(executor, block)).output, "two\n");
          else assert.match((await kit.run(executor, block)).output, /bash/);
        }
        if (hasBash) assert.equal((await kit.succeed(executor, { language: "shell", code: bashOnly })).output, "two\n");
        const strict = await kit.run(executor, { language: "shell", code: "#!/bin/sh -eu\nfalse\necho wrong" });
        assert.deepEqual([strict.exitCode, strict.output], [1, ""], "the options of the first line count");
      },
    },
    {
      name: "keeps the file of a shell block out of the work directory, where the block would find it",
      // Without Python, files of blocks can only be in the work directory.
      needs: [isRun("sh"), isRun("python")],
      async run(kit) {
        const executor = await kit.shared();
        for (const language of ["sh", "bash"].filter((name) => kit.capabilities.languages.includes(name))) {
          const { output } = await kit.succeed(executor, { language, code: "grep -r needle . || echo nothing\n" });
          assert.equal(output, "nothing\n", language);
        }
      },
    },
    {
      name: "fails a block in an unknown language with exit code 1 and lists the known ones",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const result = await kit.run(executor, [
          language.program(language.print("before")),
          { language: "klingon", code: "nuqneH" },
          language.program(language.writeFile("after.txt", "ran")),
        ]);
        assert.equal(result.exitCode, 1);
        assert.equal(result.blocks.length, 2);
        assert.match(result.output, /^before\n/, "blocks before it run");
        assertExplained(kit, result.blocks[1]?.output, "klingon");
        assert.deepEqual(await executor.files.list(), [], "blocks after it do not run");
      },
    },
    {
      name: "treats an empty or odd language name as unknown",
      async run(kit) {
        const executor = await kit.shared();
        for (const name of ["", "constructor", "__proto__", "../sh", "python; ls"]) {
          const result = await kit.run(executor, { language: name, code: "1" });
          assert.equal(result.exitCode, 1, `"${name}" is not a language`);
          assertExplained(kit, result.output, name);
        }
      },
    },
  ],
};

function assertExplained(kit: CaseContext, output = "", name = ""): void {
  assert.ok(output.includes(`unknown language "${name}"`), `expected unknown language "${name}" in ${output}`);
  for (const known of kit.capabilities.languages) assert.ok(output.includes(known), `${known} is named in ${output}`);
}
