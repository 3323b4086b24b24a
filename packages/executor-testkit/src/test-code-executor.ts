import type { ExecutorCapabilities } from "@fenced/core";
import { allGroups } from "./all-groups.ts";
import { CaseContext } from "./case-context.ts";
import type { ConformanceCase } from "./conformance-case.ts";
import type { ExecutorSubject } from "./executor-subject.ts";
import { within } from "./observe/within.ts";
import type { TestRunner, TestRunnerContext } from "./test-runner.ts";

const stepsPerCase = 5;
const defaultPatienceMs = 60_000;

/**
 * Defines the conformance suite for an executor: all that "what every executor does" promises and that can be checked
 * from outside. The suite reads the executor's `capabilities` after a start to know what must hold; a case that does
 * not apply is reported as skipped, with the reason.
 *
 * @example
 * import { testCodeExecutor } from "@fenced/executor-testkit";
 * import { describe, it } from "vitest";
 *
 * testCodeExecutor({ describe, it }, {
 *   name: "MyExecutor",
 *   create: (options) => new MyExecutor(options),
 *   load: (model) => loadComponent(model, { importModule: () => import("../src/index.ts") }),
 *   takesWorkDir: true,
 *   hostCommand: [process.execPath, join(import.meta.dirname, "fixtures/executor-host.js")],
 * });
 */
export function testCodeExecutor(runner: TestRunner, subject: ExecutorSubject): void {
  const patienceMs = subject.patienceMs ?? defaultPatienceMs;
  const timeout = patienceMs * stepsPerCase;
  let found: Promise<ExecutorCapabilities> | undefined;
  const capabilities = () => (found ??= within(patienceMs, "the first start and stop", findCapabilities(subject)));

  runner.describe(`${subject.name} is a code executor`, () => {
    for (const group of allGroups) {
      runner.describe(group.name, () => {
        for (const conformanceCase of group.cases) {
          runner.it(conformanceCase.name, { timeout }, async (context) => {
            await runCase(conformanceCase, new CaseContext(subject, await capabilities()), context);
          });
        }
      });
    }
  });
}

async function findCapabilities(subject: ExecutorSubject): Promise<ExecutorCapabilities> {
  const executor = await subject.create({});
  try {
    await executor.start();
    return executor.capabilities;
  } finally {
    await executor.stop();
  }
}

async function runCase(conformanceCase: ConformanceCase, kit: CaseContext, context: TestRunnerContext): Promise<void> {
  for (const need of conformanceCase.needs ?? []) {
    const reason = need(kit);
    if (reason === undefined) continue;
    context.skip(reason);
    return;
  }
  try {
    await conformanceCase.run(kit);
  } catch (error) {
    // What went wrong first says more than what then could not be cleaned up.
    await kit[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
  await kit[Symbol.asyncDispose]();
}
