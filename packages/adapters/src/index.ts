export { ExecutorSandboxes, type SandboxCreation } from "./executor-sandboxes.ts";
export {
  ExecutorSandbox,
  type SandboxCommand,
  type SandboxCommandResult,
  type SandboxSettings,
  type TextListener,
} from "./executor-sandbox.ts";
export type { ExecutorSandboxesOptions, SandboxRequest } from "./executor-sandboxes-options.ts";
