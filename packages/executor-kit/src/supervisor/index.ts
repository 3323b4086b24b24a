export {
  connectSupervisor,
  type ConnectOptions,
  pythonOf,
  type SupervisorAnswer,
  type SupervisorInventory,
  type SupervisorStreams,
} from "./start/connect-supervisor.ts";
export { attachProgram, carrierText, keeperText, sharedModules } from "./python-programs.ts";
export { compileSupervisor } from "./start/compile-supervisor.ts";
export {
  attachCommand,
  outerServerCommand,
  pythonCommand,
  sessionServerCommand,
  sessionServerLoader,
  supervisorCommand,
  supervisorContinuation,
  supervisorLoader,
  type OuterServer,
  type SupervisorConfig,
  type SupervisorContinuation,
  type SupervisorLoader,
} from "./start/supervisor-command.ts";
export { NoGreeting, untilGreeting } from "./start/until-greeting.ts";
export { reachedAddresses } from "./tunnels/reached-addresses.ts";
export { PublishedPorts } from "../processes/published-ports.ts";
export { type NetworkProxy, type NetworkProxyClass, SessionNetwork } from "./tunnels/session-network.ts";
export type { ReceivedFile, SentFile } from "./files/file-pieces.ts";
export {
  type ListedFile,
  SupervisedFiles,
  type SupervisedFilesSettings,
  type UnlistedPath,
} from "./files/supervised-files.ts";
export type { FilesRunner } from "./files/file-request.ts";
export { watchDirectory } from "./files/watch-directory.ts";
export type { ProgramEnd, ProgramFile, SupervisedProgram, WarmPrograms } from "./blocks/supervised-program.ts";
export { requestedSettings, type RequestedSettings, type SupervisedOptions } from "./requested-settings.ts";
export type { BlockFile, Connection, Connector, PlaceWorkspace, ProgramRunner } from "./connector.ts";
export {
  connectingTo,
  type LeftSession,
  newAddress,
  type SessionAddress,
  sessionHasEnded,
  type SessionToUse,
  sessionToJson,
} from "./keep_alive/session-address.ts";
export { paced } from "./keep_alive/paced.ts";
export { type LinkOptions, type SessionAccess, SessionLink } from "./keep_alive/session-link.ts";
export { Loss } from "./loss.ts";
export { SupervisedBackend, type SupervisedSettings } from "./supervised-backend.ts";
export { sessionMark, SupervisedPlace } from "./supervised-place.ts";
export { supervisedUsage } from "./supervised-usage.ts";
export type { Supervisor } from "./supervisor.ts";
export { type NetworkEntrance, type SendFrame, Tunnels } from "./tunnels/tunnels.ts";
export { warmOption, type WarmOptions } from "./warm/interpreter-options.ts";
export { checkStateful, type StatefulExecutorOptions, statefulOptions } from "../forkable-code-executor.ts";
export { encodeFrame, frameType, hostMagic, type FrameConsumer, FrameReader, wireModule } from "./wire/wire.ts";
export { InterpreterPlace } from "./interpreters/interpreter-place.ts";
export { StatefulBackend, type StatefulOptions } from "./interpreters/stateful-backend.ts";
export { HostWorkspace } from "./workspace/host-workspace.ts";
export { SentWorkspace, type SentWorkspaceSettings } from "./workspace/sent-workspace.ts";
