export { DockerCommandLineCodeExecutor } from "./docker-command-line-code-executor.ts";
export type { DeviceRequest, DockerExecutorOptions, VolumeMount } from "./docker-executor-options.ts";
export {
  type AllowedNetwork,
  type NetworkCredential,
  type NetworkDecision,
  type NetworkPolicy,
  packageIndexes,
} from "@fenced/core";
export type { DockerConnection, PullProgress } from "@fenced/docker-daemon";
export type { WarmOptions } from "@fenced/executor-kit/supervisor";
