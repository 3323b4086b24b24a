export { ACADynamicSessionsCodeExecutor, AzureContainerCodeExecutor } from "./aca-dynamic-sessions-code-executor.ts";
export type { ACAExecutorOptions } from "./aca-executor-options.ts";
export type { PoolType } from "./api/wire-types.ts";
export { staticToken, type AccessTokenSource } from "./token-credential.ts";
