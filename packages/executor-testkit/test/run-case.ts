import {
  testCodeExecutor,
  type ExecutorSubject,
  type SuiteOptions,
  type TestRunner,
  type TestRunnerContext,
} from "../src/index.ts";

type Test = (context: TestRunnerContext) => Promise<void>;

/** All cases of the suite by their full names (`group > case`), without running any. */
export function collectCases(subject: ExecutorSubject, options?: SuiteOptions): Map<string, Test> {
  const cases = new Map<string, Test>();
  const path: string[] = [];
  const runner: TestRunner = {
    describe: (name, define) => {
      path.push(name);
      define();
      path.pop();
    },
    // The first name is the subject's.
    it: (name, _options, test) => cases.set([...path.slice(1), name].join(" > "), test),
  };
  testCodeExecutor(runner, subject, options);
  return cases;
}

/**
 * Runs one case of the suite.
 *
 * @returns why it was skipped; `undefined` if it was not.
 * @throws what the case throws.
 */
export async function runCase(subject: ExecutorSubject, name: string): Promise<string | undefined> {
  const test = collectCases(subject).get(name);
  if (test === undefined) throw new Error(`There is no case ${JSON.stringify(name)}.`);
  let skipped: string | undefined;
  await test({ skip: (reason = "no reason") => (skipped = reason) });
  return skipped;
}
