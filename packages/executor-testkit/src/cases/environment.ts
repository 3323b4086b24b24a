import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { language, onHost } from "../needs.ts";
import type { SharedOptions } from "../shared-executors.ts";

/** Variables of the executor itself. */
const withVariables: SharedOptions = () => ({ env: { FENCED_A: "executor", FENCED_B: "executor" } });
const secretName = "FENCED_TESTKIT_SECRET";

/** What a program sees of the environment. */
export const environment: ConformanceGroup = {
  name: "environment",
  cases: [
    {
      name: "sets the executor's variables and the call's, which override the executor's",
      async run(kit) {
        const executor = await kit.shared(withVariables);
        const env = { FENCED_B: "call", FENCED_C: "call grüße = ' \"" };
        assert.deepEqual(await variables(kit, executor, env), ["executor", "call", "call grüße = ' \""]);
      },
    },
    {
      name: "forgets a call's variables after the call",
      async run(kit) {
        const executor = await kit.shared(withVariables);
        await variables(kit, executor, { FENCED_B: "call", FENCED_C: "call" });
        assert.deepEqual(await variables(kit, executor), ["executor", "executor", "(unset)"]);
      },
    },
    {
      name: "hides the host's variables from the code",
      async run(kit) {
        const secret = randomUUID();
        process.env[secretName] = secret;
        try {
          const result = await kit.succeedWith(await kit.create(), kit.language.printVariable(secretName));
          assert.equal(
            result.output,
            `${secretName}=(unset)\n`,
            `the code can read the host's ${secretName}: do not pass on process.env; hostEnvironment() of @fenced/executor-kit returns what programs need`,
          );
        } finally {
          Reflect.deleteProperty(process.env, secretName);
        }
      },
    },
    {
      name: "sets PATH and HOME for programs",
      needs: [onHost],
      async run(kit) {
        const executor = await kit.shared();
        const missing = await unset(kit, executor, "PATH", "HOME");
        assert.deepEqual(
          missing,
          [],
          `blocks need ${missing.join(", ")}: use hostEnvironment() of @fenced/executor-kit`,
        );
      },
    },
    {
      name: "makes pip quiet",
      needs: [language("python")],
      async run(kit) {
        const executor = await kit.shared();
        const missing = await unset(kit, executor, "PIP_QUIET", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT");
        assert.deepEqual(
          missing,
          [],
          `pip would print or prompt without ${missing.join(", ")}: use blockEnvironment of @fenced/executor-kit`,
        );
      },
    },
  ],
};

/** Returns those of the variables that are unset or off in blocks. */
async function unset(kit: CaseContext, executor: CodeExecutor, ...names: readonly string[]): Promise<string[]> {
  const program = kit.language.program(...names.map((name) => kit.language.printVariable(name)));
  const { output } = await kit.succeed(executor, program);
  const lines = output.split("\n");
  return names.filter((name) => !lines.some((line) => line.startsWith(`${name}=`) && !/=(?:\(unset\)|0)?$/.test(line)));
}

async function variables(
  kit: CaseContext,
  executor: CodeExecutor,
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
