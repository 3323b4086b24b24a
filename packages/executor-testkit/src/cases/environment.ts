import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { language, onHost } from "../needs.ts";

const secretName = "FENCED_TESTKIT_SECRET";

/** What a program sees of the environment. */
export const environment: ConformanceGroup = {
  name: "environment",
  cases: [
    {
      name: "adds the executor's variables and the call's, the call's over the executor's",
      async run(kit) {
        const executor = await kit.create({ env: { FENCED_A: "executor", FENCED_B: "executor" } });
        const env = { FENCED_B: "call", FENCED_C: "call grüße = ' \"" };
        assert.deepEqual(await variables(kit, executor, env), ["executor", "call", "call grüße = ' \""]);
      },
    },
    {
      name: "forgets a call's variables after the call",
      async run(kit) {
        const executor = await kit.create({ env: { FENCED_B: "executor" } });
        await variables(kit, executor, { FENCED_A: "call", FENCED_B: "call" });
        assert.deepEqual(await variables(kit, executor), ["(unset)", "executor", "(unset)"]);
      },
    },
    {
      name: "keeps the host's variables from the code",
      async run(kit) {
        const secret = randomUUID();
        process.env[secretName] = secret;
        try {
          const result = await kit.succeedWith(await kit.create(), kit.language.printVariable(secretName));
          assert.equal(result.output, `${secretName}=(unset)\n`);
        } finally {
          Reflect.deleteProperty(process.env, secretName);
        }
      },
    },
    {
      name: "passes on what programs need",
      needs: [onHost],
      async run(kit) {
        const executor = await kit.create();
        for (const name of ["PATH", "HOME"]) {
          const result = await kit.succeedWith(executor, kit.language.printVariable(name));
          assert.notEqual(result.output, `${name}=(unset)\n`);
        }
      },
    },
    {
      name: "makes pip quiet",
      needs: [language("python")],
      async run(kit) {
        const executor = await kit.create();
        for (const name of ["PIP_QUIET", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT"]) {
          const result = await kit.succeedWith(executor, kit.language.printVariable(name));
          assert.match(result.output, /=[^(\n0]+\n$/, `${name} is set`);
        }
      },
    },
  ],
};

async function variables(
  kit: CaseContext,
  executor: Parameters<CaseContext["run"]>[0],
  env?: Readonly<Record<string, string>>,
): Promise<string[]> {
  const names = ["FENCED_A", "FENCED_B", "FENCED_C"];
  const program = kit.language.program(...names.map((name) => kit.language.printVariable(name)));
  const { output } = await kit.succeed(executor, program, env === undefined ? {} : { env });
  return output
    .trimEnd()
    .split("\n")
    .map((line) => line.slice(line.indexOf("=") + 1));
}
