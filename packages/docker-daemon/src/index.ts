export { ContainerLeash, type LeashOrder } from "./container-leash.ts";
export {
  containerLimits,
  type ContainerLimits,
  type ContainerUser,
  isRootless,
  limitsConfig,
  memoryLimit,
  type UserAndGroup,
  userForBind,
  userForVolume,
} from "./container-config.ts";
export { asDuplex, execProgram, type ProgramStreams, splitOutputs } from "./container-streams.ts";
export {
  answered,
  type Container,
  type ContainerCreateOptions,
  type DaemonClient,
  type DaemonTransport,
  dockerConnection,
  type DockerClient,
  type DockerConnection,
  dockerReason,
  type Exec,
  type HostConfig,
  isNotFound,
  type MountSettings,
  OutputDemultiplexer,
  readConnection,
  removeContainer,
  statusCode,
} from "./daemon-client.ts";
export { findDaemon, type Daemon } from "./find-daemon.ts";
export { ensureImage, type ImageRequest, type PullProgress } from "./pull-image.ts";
