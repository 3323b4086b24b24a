export { LocalCommandLineCodeExecutor } from "./local-command-line-code-executor.ts";
export type { LocalExecutorOptions } from "./local-executor-options.ts";
export { createVirtualEnv, type CreateVirtualEnvOptions } from "./virtual-env.ts";
