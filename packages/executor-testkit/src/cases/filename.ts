import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { type CodeBlock, type CodeExecutor, WorkspacePathError } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import type { FixtureLanguage } from "../languages/fixture-language.ts";
import { knownLanguages } from "../languages/known-languages.ts";
import { codeFile, language as isRun, visibleOnHost } from "../needs.ts";

const named = (language: FixtureLanguage, path: string, code: string, newline = "\n"): CodeBlock => ({
  language: language.name,
  code: `${language.comment} filename: ${path}${newline}${code}`,
});

const savesModule = (language: FixtureLanguage): ConformanceCase => ({
  name: `saves a ${language.name} block under its filename, so that later blocks can import it`,
  needs: [isRun(language.name)],
  async run(kit) {
    const path = `lib/deep/module.${language.extension}`;
    const executor = await kit.shared();
    const source = language.moduleSource("of the module");
    await kit.succeed(executor, named(language, path, source));
    assert.ok((await readText(executor, path)).includes(source.trim()), "the file holds the block's code");
    const result = await kit.succeed(executor, language.program(language.printImported(path)));
    assert.equal(result.output, "of the module\n");
  },
});

const refuses = (how: string, path: string): ConformanceCase => ({
  name: `fails a block whose filename leads out of the workspace (${how})`,
  async run(kit) {
    const { language } = kit;
    const executor = await kit.shared();
    const target = path.replace("*", `fenced-testkit-${randomUUID()}.${language.extension}`);
    const result = await kit.run(executor, [
      language.program(language.print("before")),
      named(language, target, language.program(language.writeFile("ran.txt", "ran")).code),
      language.program(language.writeFile("after.txt", "ran")),
    ]);
    assertRefused(result);
    assert.deepEqual(await executor.files.list(), [], "neither the block nor a later one ran");
    const seen = await kit.succeedWith(executor, language.printExists(target));
    assert.equal(seen.output, "missing\n", "nothing was written there");
  },
});

/** Blocks that name the file in which to save them. */
export const filename: ConformanceGroup = {
  name: "filename",
  cases: [
    ...knownLanguages.map(savesModule),
    {
      name: "runs the block as well as saving it",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const path = `named.${language.extension}`;
        const { code } = language.program(language.print("ran"));
        const result = await kit.succeed(executor, named(language, path, code));
        assert.equal(result.output, "ran\n");
        assert.deepEqual(await kit.paths(executor), [path]);
      },
    },
    {
      name: "understands a first line that ends with CRLF",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const path = `crlf.${language.extension}`;
        await kit.succeed(executor, named(language, path, `${language.nothing()}\n`, "\r\n"));
        assert.deepEqual(await kit.paths(executor), [path]);
      },
    },
    {
      name: "understands a first line after a byte order mark",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const path = `marked.${language.extension}`;
        const { code } = language.program(language.print("ran"));
        const block = named(language, path, code, "\r\n");
        assert.equal((await kit.succeed(executor, { ...block, code: `\uFEFF${block.code}` })).output, "ran\n");
        assert.deepEqual(await kit.paths(executor), [path]);
      },
    },
    {
      name: "and files.* accept an absolute path in the workspace, as programs see it",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        await executor.start();
        const { workspacePath } = executor;
        if (workspacePath === undefined) return;
        const path = `sub/absolute.${language.extension}`;
        const absolute = `${workspacePath}/${path}`;
        await kit.succeed(executor, named(language, absolute, language.program(language.print("ran")).code));
        assert.ok((await readText(executor, absolute)).includes(language.print("ran")));
        assert.equal((await executor.files.stat(absolute)).path, path);
        assert.deepEqual(await executor.files.list(`${workspacePath}/sub`), await executor.files.list());
        await executor.files.write(`${workspacePath}/written.txt`, "written");
        assert.deepEqual(await kit.paths(executor), [path, "written.txt"]);
        assertRefused(await kit.run(executor, named(language, `${workspacePath}/../${path}`, language.nothing())));
        await kit.rejects(WorkspacePathError, "read", executor.files.read(`${workspacePath}-other/a.txt`));
        await executor.files.remove(absolute);
        assert.deepEqual(await kit.paths(executor), ["written.txt"]);
      },
    },
    {
      name: "and files.write() refuse `~`, which would become a directory of that name",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        assertRefused(await kit.run(executor, named(language, `~/a.${language.extension}`, language.nothing())));
        await kit.rejects(WorkspacePathError, "write", executor.files.write("~/a.txt", "a"));
        await executor.files.write("./~/a.txt", "a");
        assert.deepEqual(await kit.paths(executor), ["~/a.txt"]);
        await executor.files.remove("~");
        assert.deepEqual(await kit.paths(executor), []);
      },
    },
    {
      name: "replaces the file when a later block has the same name",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const path = `twice.${language.extension}`;
        await kit.succeed(
          executor,
          named(language, path, language.program(language.print("a long first version")).code),
        );
        const second = await kit.succeed(executor, named(language, path, language.program(language.print("2")).code));
        assert.equal(second.output, "2\n");
        const text = await readText(executor, path);
        assert.ok(text.includes(language.print("2")) && !text.includes(language.print("a long first version")));
      },
    },
    {
      name: "fails a block whose file cannot be created",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        await executor.files.write("file.txt", "no directory");
        await executor.files.write("directory/file.txt", "in a directory");
        for (const path of ["file.txt/below", "directory", "x".repeat(300)]) {
          const result = await kit.run(executor, [
            named(language, path, language.program(language.print("ran")).code),
            language.program(language.writeFile("after.txt", "ran")),
          ]);
          assert.notEqual(result.exitCode, 0, "a bad name, which a model may choose, fails the block without throwing");
          assert.notEqual(result.output, "", "the output says why");
        }
        assert.deepEqual(await kit.paths(executor), ["directory/file.txt", "file.txt"]);
      },
    },
    {
      name: "keeps the file when the block fails",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const path = `failed.${language.extension}`;
        await kit.run(executor, named(language, path, language.program(language.fail("deliberate")).code));
        assert.equal((await executor.files.list())[0]?.path, path);
      },
    },
    {
      name: "is returned in codeFile as an absolute path on the host",
      needs: [visibleOnHost, codeFile],
      async run(kit) {
        const { language, subject } = kit;
        const executor = await kit.create(subject.takesWorkDir ? { workDir: await kit.directory() } : {});
        const { code } = language.program(language.print("ran"));
        const path = `sub/named.${language.extension}`;
        const block = named(language, path, code);
        const { codeFile: file } = await kit.succeed(executor, [block, language.program(language.print("other"))]);
        assert.ok(file !== undefined && isAbsolute(file), `codeFile is ${file}`);
        assert.ok(file.replaceAll("\\", "/").endsWith(`/${path}`));
        assert.ok((await readFile(file, "utf8")).includes(code));
        const unnamed = await kit.succeedWith(executor, language.print("unnamed"));
        // A shell's script need not be in the work directory, or on the host.
        assert.ok(unnamed.codeFile !== undefined || ["bash", "sh"].includes(language.name));
        if (unnamed.codeFile === undefined) return;
        assert.ok(isAbsolute(unnamed.codeFile), `codeFile is ${unnamed.codeFile}`);
        await assert.rejects(stat(unnamed.codeFile), "a temporary file is removed");
      },
    },
    refuses("parent directory", "../*"),
    refuses("parent directory in the middle", "sub/../../*"),
    refuses("absolute", "/tmp/*"),
    {
      name: "fails a block whose filename leads through a symbolic link made by code",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const outside = await kit.outside(executor);
        await kit.succeedWith(executor, language.symlink(outside, "link"));
        const path = `evil.${language.extension}`;
        assertRefused(await kit.run(executor, named(language, `link/${path}`, language.program().code)));
        const seen = await kit.succeedWith(executor, language.printExists(`${outside}/${path}`));
        assert.equal(seen.output, "missing\n");
      },
    },
    {
      name: "fails a block whose file is a symbolic link out of the workspace",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const outside = await kit.outside(executor);
        const link = `link.${language.extension}`;
        for (const target of [`${outside}/there.txt`, `${outside}/missing.txt`]) {
          await kit.succeedWith(
            executor,
            language.writeFile(`${outside}/there.txt`, "untouched"),
            language.symlink(target, link),
          );
          assertRefused(await kit.run(executor, named(language, link, language.program(language.nothing()).code)));
          await assert.doesNotReject(executor.files.remove(link), "the link itself may be removed");
        }
        const seen = await kit.succeedWith(
          executor,
          language.printFile(`${outside}/there.txt`),
          language.print(""),
          language.printExists(`${outside}/missing.txt`),
        );
        assert.equal(seen.output, "untouched\nmissing\n");
      },
    },
  ],
};

function assertRefused(result: Awaited<ReturnType<CaseContext["run"]>>): void {
  assert.equal(result.exitCode, 1);
  assert.equal(result.blocks.at(-1)?.exitCode, 1);
  assert.match(result.output, /Filename is not in the workspace/);
}

async function readText(executor: CodeExecutor, path: string): Promise<string> {
  return new TextDecoder().decode(await executor.files.read(path));
}
