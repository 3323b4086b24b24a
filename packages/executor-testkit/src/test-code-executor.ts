import { InvalidInputError, type ExecutorCapabilities } from "@fenced/core";
import { allGroups } from "./all-groups.ts";
import { CaseContext, defaultPatienceMs } from "./case-context.ts";
import { checkSuiteArguments } from "./check-suite-arguments.ts";
import type { ConformanceCase, ConformanceGroup } from "./conformance-case.ts";
import type { ExecutorSubject } from "./executor-subject.ts";
import { within } from "./observe/within.ts";
import { selectedCases, type CaseSelection } from "./selected-cases.ts";
import { SharedExecutors } from "./shared-executors.ts";
import type { SuiteOptions } from "./suite-options.ts";
import type { TestOptions, TestRunner, TestRunnerContext } from "./test-runner.ts";

const stepsPerCase = 5;

/**
 * Defines the conformance suite for an executor: everything that "what every executor does" promises and that can be
 * checked from outside. The suite reads the executor's `capabilities` after a start to know what must hold; a case that
 * does not apply is reported as skipped, with the reason.
 *
 * @throws InvalidInputError if a part of the subject or an option is unknown or wrong, or `options.groups` is empty or
 * names a group that does not exist.
 *
 * @example
 * import { testCodeExecutor } from "@fenced/executor-testkit";
 * import { afterAll, describe, it } from "vitest";
 *
 * testCodeExecutor({ describe, it, afterAll }, {
 *   name: "MyExecutor",
 *   create: (options) => new MyExecutor(options),
 *   load: (model) => loadComponent(model, { importModule: () => import("../src/index.ts") }),
 *   takesWorkDir: true,
 *   hostCommand: [process.execPath, join(import.meta.dirname, "fixtures/executor-host.js")],
 * });
 */
export function testCodeExecutor(runner: TestRunner, subject: ExecutorSubject, options: SuiteOptions = {}): void {
  const checked = checkSuiteArguments(runner, subject, options);
  const groups = chosenGroups(checked.groups);
  const patienceMs = subject.patienceMs ?? defaultPatienceMs;
  const timeout = patienceMs * stepsPerCase;
  let found: Promise<ExecutorCapabilities> | undefined;
  const capabilities = () => (found ??= within(patienceMs, "the first start and stop", findCapabilities(subject)));
  const sharing = runner.afterAll && new SharedExecutors();

  const selection = checked.cases ?? "all";

  runner.describe(title(subject, groups, selection), () => {
    for (const group of groups) {
      const cases = selectedCases(group, selection);
      if (cases.length === 0) continue;
      runner.describe(group.name, () => {
        for (const conformanceCase of cases) {
          const sideBySide = checked.concurrent === true && group.waits === true && conformanceCase.alone !== true;
          const settings: TestOptions = sideBySide ? { timeout, concurrent: true } : { timeout };
          runner.it(conformanceCase.name, settings, async (context) => {
            await runCase(conformanceCase, new CaseContext(subject, await capabilities(), sharing), context);
          });
        }
      });
    }
    if (sharing) runner.afterAll?.(() => within(patienceMs, "stop() of shared executors", sharing.end()));
  });
}

function chosenGroups(names: readonly string[] | undefined): readonly ConformanceGroup[] {
  if (names === undefined) return allGroups;
  const known = allGroups.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (names.length > 0 && unknown.length === 0) return allGroups.filter(({ name }) => names.includes(name));
  const problem = names.length === 0 ? "`groups` is empty" : `There is no group ${unknown.map(quoted).join(", ")}`;
  throw new InvalidInputError(problem, {
    remedy: `Leave \`groups\` out to run the whole suite, or choose from ${known.map(quoted).join(", ")}.`,
  });
}

function title(subject: ExecutorSubject, groups: readonly ConformanceGroup[], selection: CaseSelection): string {
  if (groups.length === allGroups.length) {
    const left = {
      all: "",
      place: ", as far as its place decides",
      connection: ", as far as its connection decides",
      smoke: ", in the suite's smoke cases",
    }[selection];
    return `${subject.name} is a code executor${left}`;
  }
  const names = groups.map(({ name }) => name).join(", ");
  return `${subject.name} in ${groups.length} of the suite's ${allGroups.length} groups: ${names}`;
}

function quoted(name: string): string {
  return JSON.stringify(name);
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
    kit.discardShared();
    // The first error says more than a failed clean-up after it.
    await kit[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
  await kit[Symbol.asyncDispose]();
}
