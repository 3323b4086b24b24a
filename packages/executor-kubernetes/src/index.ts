export { sandboxTemplate, type SandboxTemplateOptions } from "./claim/sandbox-template.ts";
export { KubernetesCommandLineCodeExecutor } from "./kubernetes-command-line-code-executor.ts";
export type { KubernetesExecutorOptions, PodResources, WarmPoolOptions } from "./kubernetes-executor-options.ts";
export type { WarmOptions } from "@fenced/executor-kit/supervisor";
