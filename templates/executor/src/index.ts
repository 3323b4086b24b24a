export { ExampleCodeExecutor } from "./example-code-executor.ts";
export type { ExampleExecutorOptions } from "./example-executor-options.ts";
