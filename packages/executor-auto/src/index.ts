export { openExecutor } from "./open-executor.ts";
export type { FenceName, FencedExecutor, OpenedFence, PassedOverFence } from "./fenced-executor.ts";
export type { DownloadProgress, OpenExecutorOptions } from "./open-executor-options.ts";
