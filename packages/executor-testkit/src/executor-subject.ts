import type { CodeExecutor, ComponentModel, ConnectExecutorOptions, SessionHandle } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";
import type { FixtureLanguage } from "./languages/fixture-language.ts";

/** Describes the executor under test to the suite, which reads what it can do from its `capabilities`. */
export interface ExecutorSubject {
  /** The executor's name, for the report. */
  readonly name: string;

  /**
   * Creates a new executor without starting it. Do not set options that are not given, so that defaults are tested. An
   * invalid option must throw (or reject) here.
   */
  create(options: CommonExecutorOptions): CodeExecutor | Promise<CodeExecutor>;

  /** Creates an executor from the output of `dumpComponent`. */
  load(model: ComponentModel): CodeExecutor | Promise<CodeExecutor>;

  /**
   * Connects to a session that another executor has left, as `connectExecutor` of core does: for an executor with the
   * option `keepAliveMs`. Without this method, the suite does not test that.
   */
  connect?(handle: SessionHandle, options?: ConnectExecutorOptions): Promise<CodeExecutor>;

  /**
   * For an executor with `connect`: submitted runs end with their program although the session goes on. Default: false,
   * they go on as well.
   */
  readonly runsEnd?: boolean;

  /**
   * Whether the executor has an option `workDir`, a directory of the host that the blocks work in. Also true for an
   * executor that runs blocks on another host, if that host is this machine in the test.
   */
  readonly takesWorkDir: boolean;

  /**
   * Whether the executor has an option `network`, which takes `"none"` and a policy that lists hosts. Default: false, so
   * that the cases about it are skipped.
   */
  readonly takesNetworkPolicy?: boolean;

  /**
   * A command that starts a program which calls only `runExecutorHost(create)`. The suite starts it, kills it, and
   * checks what remains. May be a getter: it is read in those cases, after your own hooks have run.
   *
   * @example
   * [process.execPath, join(import.meta.dirname, "fixtures/executor-host.js")]
   */
  readonly hostCommand: readonly [program: string, ...args: string[]];

  /**
   * Lists what the executor currently keeps outside this process and the file system: containers, kernels, sessions.
   * The suite checks that nothing is left behind.
   */
  listResources?(): Promise<readonly string[]>;

  /**
   * Kills the place where the executor's code runs (the container, the kernel, the connection), as a crash would.
   * Resolves when it is dead. Without this method, the suite does not test what happens then.
   */
  breakPlace?(executor: CodeExecutor): Promise<void>;

  /**
   * For an executor whose `isolation` is `"remote"`: output arrives while the program runs, and the program waits for a
   * consumer that does not read. The suite then tests this as it does for all other executors. Default: false.
   */
  readonly live?: boolean;

  /**
   * Nothing is connected to the place while no block runs, so only the next call notices its loss. Default: true for an
   * executor whose `isolation` is `"remote"` and that is not `live`, else false.
   */
  readonly asksOnly?: boolean;

  /**
   * The backend closes the output at the end of a block, so a process that the block leaves running can no longer
   * print. The suite then skips servers that log. Default: false.
   */
  readonly closesOutput?: boolean;

  /**
   * The backend does not report when a program started with `stdin: true` closes its input, so writing to it fails only
   * after the program has ended. The suite then skips the case. Default: false.
   */
  readonly keepsInputOpen?: boolean;

  /** How long one step may take before the suite considers it hung, in milliseconds. Default: 120,000. */
  readonly patienceMs?: number;

  /**
   * Programs for an executor that runs none of the languages for which the suite has programs (python, javascript,
   * bash, sh).
   */
  readonly language?: FixtureLanguage;
}
