import { defineComponent, type Component, type ComponentModel, type ExecutorCapabilities } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import { BaseCodeExecutor } from "@fenced/executor-kit";
import { wasmExecutorOptions, type WasmExecutorOptions } from "./wasm-executor-options.ts";
import { WasmSession } from "./wasm-session.ts";

const mebibyte = 1_048_576;

/**
 * Runs Python in an interpreter compiled to WebAssembly, in a process with an empty environment and without network
 * access or access to your files. It needs only Node. Variables survive from block to block. The session's files live
 * in a file system in memory.
 *
 * @example
 * await using executor = new WasmCodeExecutor({ timeoutMs: 10_000 });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class WasmCodeExecutor extends BaseCodeExecutor<WasmSession> {
  static readonly component: Component<WasmCodeExecutor> = defineComponent({
    provider: "@fenced/executor-wasm:WasmCodeExecutor",
    componentType: "code_executor",
    schema: wasmExecutorOptions,
    load: (options) => new WasmCodeExecutor(options),
  });
  readonly #options: WasmExecutorOptions;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: WasmExecutorOptions = {}) {
    const checked = checkOptions(wasmExecutorOptions, options, "WasmCodeExecutor");
    super(checked);
    this.#options = checked;
  }

  protected readonly offered: ExecutorCapabilities = {
    languages: ["python"],
    stateful: true,
    displays: false,
    functions: ["python"],
    hostFunctions: [],
    stdin: true,
    isolation: "wasm",
  };

  dumpComponent(): ComponentModel {
    return WasmCodeExecutor.component.dump({ ...this.#options });
  }

  protected openSession(signal: AbortSignal): Promise<WasmSession> {
    return WasmSession.open(
      {
        id: this.id,
        memoryBytes: this.#options.memoryBytes ?? 512 * mebibyte,
        storageBytes: this.#options.storageBytes ?? 256 * mebibyte,
        cacheDirectory: this.#options.cacheDirectory,
        onLost: (reason, options) => this.sessionLost(reason, options),
        functions: { forget: () => this.forgetFunctions(), setUpAgain: () => this.setUpFunctionsAgain() },
      },
      signal,
    );
  }
}
