/** How the suite is run. By default all of it, one case after another. */
export interface SuiteOptions {
  /**
   * Only these groups, by their names, for a **variant** of an executor that passes the whole suite elsewhere: another image,
   * another version of a server, another way to the same place. Name the groups that the variant can change. The suite's title
   * says that it is a part, and which, so that a report of it never reads like one of the whole.
   */
  readonly groups?: readonly string[];

  /**
   * Let cases of groups that mostly wait (`timeout`, `abort` and others) run side by side, none with the executor of another, which
   * takes a third of the time. They are defined with `concurrent: true`, which vitest knows (it runs `maxConcurrency`, 5, of
   * them at once); other runners run them one after another. Default: false, for places where not many executors can be
   * started at once.
   */
  readonly concurrent?: boolean;
}
