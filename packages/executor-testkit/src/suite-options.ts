/** Options of the suite. By default it runs in full, one case after another. */
export interface SuiteOptions {
  /**
   * Run only the groups with these names, for a **variant** of an executor that passes the whole suite elsewhere:
   * another image, another server version, another connection to the same place. Name the groups that the variant can
   * affect. The suite's title says that it is partial and lists the groups, so that its report cannot be mistaken for a
   * full one.
   */
  readonly groups?: readonly string[];

  /**
   * Which cases of the groups to run. Default: `"all"`.
   *
   * - `"place"`, for an executor that extends `BaseCodeExecutor` of `@fenced/executor-kit` and whose base class has passed the whole
   *   suite elsewhere: leaves out what only the objects decide that it shares with other executors.
   * - `"connection"`, for one that connects to the supervisor of `@fenced/executor-kit`, if another one has passed the suite with
   *   `"place"`: also leaves out what the supervisor decides.
   * - `"smoke"`, for a mechanism that has passed the suite elsewhere: one or two cases of each group show that it works here, too.
   *
   * With any of these, the suite's title says that it is partial.
   */
  readonly cases?: "all" | "place" | "connection" | "smoke";

  /**
   * Run the cases of groups that mostly wait (`timeout`, `abort` and others) concurrently, no two with the same executor,
   * in about a third of the time. They are defined with `concurrent: true`, which vitest supports (it runs
   * `maxConcurrency`, 5, of them at once); other runners run them one after another. Default: false, for places that
   * cannot start many executors at once.
   */
  readonly concurrent?: boolean;
}
