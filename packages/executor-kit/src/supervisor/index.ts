export {
  connectSupervisor,
  type ConnectOptions,
  type SupervisorAnswer,
  type SupervisorInventory,
  type SupervisorStreams,
} from "./connect-supervisor.ts";
export { carrierText, supervisorCommand, type SupervisorConfig } from "./supervisor-command.ts";
export type { ProgramEnd, SupervisedProgram, Supervisor, WarmPython } from "./supervisor.ts";
export { type NetworkEntrance, type SendFrame, Tunnels } from "./tunnels.ts";
export { encodeFrame, hostMagic, type FrameConsumer, FrameReader } from "./wire.ts";
