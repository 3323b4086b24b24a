export { LocalCommandLineCodeExecutor } from "./local-command-line-code-executor.ts";
export type { LocalExecutorOptions } from "./local-executor-options.ts";
export type { WarmOptions } from "@fenced/executor-kit/supervisor";
export { createVirtualEnv, type CreateVirtualEnvOptions } from "./virtual-env.ts";
