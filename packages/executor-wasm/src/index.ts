export { WasmCodeExecutor } from "./wasm-code-executor.ts";
export type { WasmExecutorOptions, WasmLanguage } from "./wasm-executor-options.ts";
export type { OsSandboxUse } from "./interpreter/os-sandbox.ts";
export type { WasmPackages } from "./packages/package-options.ts";
