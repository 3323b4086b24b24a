export type { EmulatorOptions } from "./emulator-options.ts";
export type { PoolType } from "./sessions/session-process.ts";
export type { TokenOptions } from "./http/access-guard.ts";
export type { Fault, FaultAim } from "./http/faults.ts";
export { startAcaEmulator, type AcaEmulator } from "./start-aca-emulator.ts";
