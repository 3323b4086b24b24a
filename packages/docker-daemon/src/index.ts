export { ContainerLeash, type LeashOrder } from "./container-leash.ts";
export {
  containerLimits,
  type ContainerLimits,
  type ContainerUser,
  kernelFiles,
  limitsConfig,
  memoryLimit,
  ownHostName,
  type UserAndGroup,
  userForBind,
  userForVolume,
} from "./container-config.ts";
export { chooseRuntime, type RuntimeKernel, runtimeKernel } from "./container-runtime.ts";
export {
  answered,
  asDuplex,
  type Container,
  type ContainerCreateOptions,
  createContainer,
  type DockerClient,
  dockerReason,
  type Exec,
  execProgram,
  type HostConfig,
  isNotFound,
  type MountSettings,
  OutputDemultiplexer,
  type ProgramStreams,
  removeContainer,
  splitOutputs,
  statusCode,
} from "./daemon-calls.ts";
export { checkLimits, type DaemonFacts, daemonFacts } from "./daemon-facts.ts";
export {
  type Daemon,
  type DaemonClient,
  type DaemonTransport,
  dockerConnection,
  type DockerConnection,
  findDaemon,
  readConnection,
} from "./find-daemon.ts";
export { giveDirectory } from "./give-directory.ts";
export { createWithFilter } from "./hardened-container.ts";
export { daemonSocketRefusal, holdsDaemonSocket, isPath, type MountSource, refuseSockets } from "./mounted-sockets.ts";
export { nameUser } from "./name-user.ts";
export { type MountedSource, refuseReplaced, type SeenMounts } from "./replaced-mounts.ts";
export { ensureImage, type ImageRequest, type PullProgress } from "./pull-image.ts";
