import {
  testCodeExecutor,
  type ExecutorSubject,
  type SuiteOptions,
  type TestRunner,
  type TestRunnerContext,
} from "../src/index.ts";

type Test = (context: TestRunnerContext) => Promise<void>;

/**
 * All cases of the suite by their full names (`group > case`), without running any.
 *
 * @param afterAll - gets the hook that stops shared executors; without it, cases share none.
 */
export function collectCases(
  subject: ExecutorSubject,
  options?: SuiteOptions,
  afterAll?: NonNullable<TestRunner["afterAll"]>,
): Map<string, Test> {
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
    ...(afterAll && { afterAll }),
  };
  testCodeExecutor(runner, subject, options);
  return cases;
}

/**
 * Runs one case of the suite, which may share executors.
 *
 * @returns why it was skipped; `undefined` if it was not.
 * @throws what the case throws.
 */
export async function runCase(subject: ExecutorSubject, name: string): Promise<string | undefined> {
  let stopShared = async (): Promise<void> => {};
  const test = collectCases(subject, {}, (hook) => (stopShared = hook)).get(name);
  if (test === undefined) throw new Error(`There is no case ${JSON.stringify(name)}.`);
  let skipped: string | undefined;
  try {
    await test({ skip: (reason = "no reason") => (skipped = reason) });
  } finally {
    await stopShared();
  }
  return skipped;
}
