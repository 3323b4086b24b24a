export type { DockerConnection } from "./daemon/docker-connection.ts";
export { DockerCommandLineCodeExecutor } from "./docker-command-line-code-executor.ts";
export type { DeviceRequest, DockerExecutorOptions, PullProgress, VolumeMount } from "./docker-executor-options.ts";
