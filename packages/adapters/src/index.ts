export { ExecutorSandboxes } from "./executor-sandboxes.ts";
export { ExecutorSandbox, type SandboxCommand, type SandboxCommandResult } from "./executor-sandbox.ts";
export type { ExecutorSandboxesOptions, SandboxRequest } from "./executor-sandboxes-options.ts";
