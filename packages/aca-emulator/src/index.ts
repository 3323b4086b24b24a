export type { EmulatorOptions, PoolType } from "./emulator-options.ts";
export { createToken, type TokenOptions } from "./http/bearer-token.ts";
export type { Fault, FaultAim } from "./http/fault.ts";
export { startAcaEmulator, type AcaEmulator } from "./start-aca-emulator.ts";
