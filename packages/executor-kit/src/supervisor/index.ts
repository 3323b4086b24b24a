export {
  connectSupervisor,
  type ConnectOptions,
  type SupervisorAnswer,
  type SupervisorInventory,
  type SupervisorStreams,
} from "./connect-supervisor.ts";
export {
  carrierText,
  pythonCommand,
  supervisorCommand,
  supervisorLoader,
  type SupervisorConfig,
  type SupervisorLoader,
} from "./supervisor-command.ts";
export { PublishedPorts } from "./published-ports.ts";
export { type NetworkProxy, type NetworkProxyClass, SessionNetwork } from "./session-network.ts";
export { SupervisedFiles, type SupervisedPlace } from "./supervised-files.ts";
export {
  outcomeOf,
  type ProgramEnd,
  type ProgramFile,
  type SupervisedProgram,
  type WarmPrograms,
} from "./supervised-program.ts";
export type { Supervisor } from "./supervisor.ts";
export { type NetworkEntrance, type SendFrame, Tunnels } from "./tunnels.ts";
export { warmOption, type WarmOptions, warmPrograms } from "./warm-options.ts";
export { encodeFrame, hostMagic, type FrameConsumer, FrameReader } from "./wire.ts";
export {
  type InterpretBlock,
  type InterpretingSession,
  StatefulSession,
  type StatefulOptions,
} from "./stateful-session.ts";
export { type StatefulPlace, StatefulPython } from "./stateful-python.ts";
export { interpreterProgram } from "./stateful-place.ts";
