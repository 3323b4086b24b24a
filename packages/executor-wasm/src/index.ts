export { WasmCodeExecutor } from "./wasm-code-executor.ts";
export type { WasmExecutorOptions } from "./wasm-executor-options.ts";
