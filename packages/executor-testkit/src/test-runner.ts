/** What a test gets from its runner: a way to report that it does not apply. */
export interface TestRunnerContext {
  /** Reports the test as skipped, with the reason. May throw, as vitest's does, or return, as that of `node:test` does. */
  skip(reason?: string): void;
}

/** How one test is run. */
export interface TestOptions {
  /** Time limit in milliseconds. */
  readonly timeout: number;
  /** Only set if the suite's option `concurrent` is: the test may run alongside other tests that have it. */
  readonly concurrent?: true;
}

/**
 * The part of a test runner that the suite uses. vitest's exports fit, and so do those of `node:test`, which calls
 * `afterAll` `after`.
 *
 * @example
 * import { afterAll, describe, it } from "vitest";
 * testCodeExecutor({ describe, it, afterAll }, subject);
 *
 * @example
 * import { after, describe, it } from "node:test";
 * testCodeExecutor({ describe, it, afterAll: after }, subject);
 */
export interface TestRunner {
  /** Names a group of tests that `define` defines. */
  describe(name: string, define: () => void): unknown;
  /** Defines one test. */
  it(name: string, options: TestOptions, test: (context: TestRunnerContext) => Promise<void>): unknown;

  /**
   * Runs `hook` once, after the last test of the group that is being defined. If you pass it, cases that do not need their own
   * executor share started ones, which the hook stops. Default: every case starts its own executor, which takes about twice the
   * processor time.
   */
  afterAll?(hook: () => Promise<void>): unknown;
}
