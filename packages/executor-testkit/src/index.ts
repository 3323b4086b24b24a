export type { CommonExecutorOptions } from "./common-executor-options.ts";
export type { ExecutorSubject } from "./executor-subject.ts";
export type { ChildKind, FixtureLanguage } from "./languages/fixture-language.ts";
export type { SuiteOptions } from "./suite-options.ts";
export { beginBlock, type BegunBlock } from "./observe/begin-block.ts";
export { MemoryWatch } from "./observe/memory-watch.ts";
export { runExecutorHost } from "./run-executor-host.ts";
export { testCodeExecutor } from "./test-code-executor.ts";
export type { TestRunner, TestRunnerContext } from "./test-runner.ts";
