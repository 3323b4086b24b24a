import type { CodeExecutor, ComponentModel } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";
import type { FixtureLanguage } from "./languages/fixture-language.ts";

/** The executor under test: how the suite gets at it. What it can do, the suite reads from its `capabilities`. */
export interface ExecutorSubject {
  /** The executor's name, for the report. */
  readonly name: string;

  /**
   * Makes a new executor that is not started. Options that are not given must not be set, so that defaults are tested.
   * An invalid option must throw (or reject) here.
   */
  create(options: CommonExecutorOptions): CodeExecutor | Promise<CodeExecutor>;

  /** Makes an executor from what `dumpComponent` returned. */
  load(model: ComponentModel): CodeExecutor | Promise<CodeExecutor>;

  /**
   * Whether the executor has an option `workDir`, a directory of the host that the blocks work in. True as well for an
   * executor that runs blocks on another host, if the test's other host is this one.
   */
  readonly takesWorkDir: boolean;

  /**
   * A command that starts a program which calls `runExecutorHost(create)` and nothing else. The suite starts it, kills
   * it, and looks at what remains. May be a getter: it is read in those cases, after your own hooks have run.
   *
   * @example
   * [process.execPath, join(import.meta.dirname, "fixtures/executor-host.js")]
   */
  readonly hostCommand: readonly [program: string, ...args: string[]];

  /**
   * Names what the executor keeps outside this process and the file system and exists now: containers, kernels,
   * sessions. The suite checks that nothing is added for good.
   */
  listResources?(): Promise<readonly string[]>;

  /**
   * Kills the place where the executor's code runs, as a crash of it would: the container, the kernel, the connection. Resolves
   * when it is dead. Without it the suite does not look at what happens then.
   */
  breakPlace?(executor: CodeExecutor): Promise<void>;

  /**
   * For an executor whose `isolation` is `"remote"`: output comes while the program runs, and a consumer that does not read
   * makes it wait. The suite then checks it as it does for all others. Default: false.
   */
  readonly live?: boolean;

  /**
   * What a process that a block leaves running prints after the end of the block fails: the backend has closed the output. The
   * suite then leaves servers that log out. Default: false.
   */
  readonly closesOutput?: boolean;

  /** The longest, in milliseconds, that one step may take before the suite calls it hung. Default: 120,000. */
  readonly patienceMs?: number;

  /**
   * Programs for an executor that runs none of the languages which the suite has programs for (python, javascript,
   * bash, sh).
   */
  readonly language?: FixtureLanguage;
}
