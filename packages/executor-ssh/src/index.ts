export { SshCommandLineCodeExecutor } from "./ssh-command-line-code-executor.ts";
export type { SshExecutorOptions } from "./ssh-executor-options.ts";
export type { WarmOptions } from "@fenced/executor-kit/supervisor";
