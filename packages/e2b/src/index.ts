export { createE2BHandler, type E2BHandler } from "./create-e2b-handler.ts";
export type {
  E2BHandlerOptions,
  NetworkTemplate,
  SandboxCreator,
  SandboxRequest,
  SandboxTemplate,
} from "./e2b-handler-options.ts";
export { E2BCodeExecutor } from "./executor/e2b-code-executor.ts";
export type { E2BExecutorOptions, WarmOptions } from "./executor/e2b-executor-options.ts";
