export { KubernetesCommandLineCodeExecutor } from "./kubernetes-command-line-code-executor.ts";
export type { KubernetesExecutorOptions, PodResources, WarmOptions } from "./kubernetes-executor-options.ts";
