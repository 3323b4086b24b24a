import assert from "node:assert/strict";
import { InvalidInputError } from "@fenced/core";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { language } from "../needs.ts";

const odd = `"double" 'single' \`back\` \\back\\slash \\n %s %% $HOME \${HOME} $(date) #{x} ~ * ? <&> 日本語 🎉 é`;

const pythonSource = (name: string, code: string, output: string): ConformanceCase => ({
  name,
  needs: [language("python")],
  async run(kit) {
    const result = await kit.succeed(await kit.shared(), { language: "python", code });
    assert.equal(result.output, output);
  },
});

/** Programs reach the interpreter unchanged. */
export const code: ConformanceGroup = {
  name: "code",
  cases: [
    {
      name: "runs code with quotes, backslashes and unicode",
      async run(kit) {
        const result = await kit.succeedWith(await kit.shared(), kit.language.print(odd));
        assert.equal(result.stdout, `${odd}\n`);
      },
    },
    {
      name: "runs a program of 10,000 lines",
      async run(kit) {
        const { language: written } = kit;
        const lines = Array.from({ length: 10_000 }, () => written.nothing());
        const result = await kit.succeedWith(await kit.shared(), ...lines, written.print("the end"));
        assert.equal(result.output, "the end\n");
      },
    },
    {
      name: "runs a program of a megabyte",
      async run(kit) {
        const { language: written } = kit;
        // Longer than the limit of any command line.
        const comments = Array.from({ length: 1024 }, () => `${written.comment} ${"x".repeat(1022)}`);
        const program = written.program(written.print("the end"));
        const result = await kit.succeed(await kit.shared(), {
          ...program,
          code: `${program.code}\n${comments.join("\n")}\n`,
        });
        assert.equal(result.output, "the end\n");
      },
    },
    {
      name: "runs code with leading blank lines and no final newline",
      async run(kit) {
        const { language: written } = kit;
        const program = written.program(written.print("odd edges"));
        const result = await kit.succeed(await kit.shared(), { ...program, code: `\n\n\n${program.code.trimEnd()}` });
        assert.equal(result.output, "odd edges\n");
      },
    },
    {
      name: "runs empty code and succeeds with no output",
      async run(kit) {
        const executor = await kit.shared();
        for (const nothing of ["", "\n", "  \n\n"]) {
          const result = await kit.succeed(executor, { language: kit.language.name, code: nothing });
          assert.equal(result.output, "");
        }
      },
    },
    {
      name: "returns a result or throws InvalidInputError for code with a NUL character",
      async run(kit) {
        const executor = await kit.shared();
        const { comment, name } = kit.language;
        const block = { language: name, code: `${comment} a\0b\n` };
        await kit.run(executor, block).catch((error: unknown) => {
          assert.ok(InvalidInputError.isInstance(error), `rejected with ${String(error)}`);
        });
        await kit.succeedWith(executor, kit.language.print("goes on"));
      },
    },
    pythonSource("runs code with CRLF line endings", "x = 1\r\nif x:\r\n    print('yes')\r\n", "yes\n"),
    pythonSource("keeps indentation and multi-line strings", 'print("""a\n    b\n\n""" + "c")\n', "a\n    b\n\nc\n"),
    pythonSource("keeps tabs", "if True:\n\tprint('a\tb')\n", "a\tb\n"),
  ],
};
