import { defineComponent, type Component, type ComponentModel, type ExecutorCapabilities } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import { absolutePaths, allFileFeatures, BaseCodeExecutor } from "@fenced/executor-kit";
import { chooseOsSandbox, type OsSandboxUse } from "./interpreter/os-sandbox.ts";
import { WasmBackend } from "./wasm-backend.ts";
import {
  wasmExecutorOptions,
  wasmLanguages,
  type WasmExecutorOptions,
  type WasmLanguage,
} from "./wasm-executor-options.ts";

const mebibyte = 1_048_576;

/**
 * Runs Python, JavaScript and TypeScript in interpreters compiled to WebAssembly, each in a process with an empty
 * environment and without network access or access to your files. It needs only Node. Variables survive from block to
 * block. The session's files live in a file system in memory, which all languages share.
 *
 * @example
 * await using executor = new WasmCodeExecutor({ timeoutMs: 10_000 });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class WasmCodeExecutor extends BaseCodeExecutor {
  static readonly component: Component<WasmCodeExecutor> = defineComponent({
    provider: "@fenced/executor-wasm:WasmCodeExecutor",
    componentType: "code_executor",
    schema: wasmExecutorOptions,
    load: (options) => new WasmCodeExecutor(options),
  });
  /** As they were given, for `dumpComponent`. */
  readonly #given: WasmExecutorOptions;
  readonly #options: WasmExecutorOptions;
  #osSandbox: OsSandboxUse | undefined;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: WasmExecutorOptions = {}) {
    const checked = checkOptions(wasmExecutorOptions, options, "WasmCodeExecutor");
    super(checked);
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir", "cacheDirectory"]);
    const languages = this.#languages;
    this.offered = {
      languages,
      stateful: true,
      displays: languages.includes("python"),
      functions: languages.filter((each) => each !== "typescript"),
      hostFunctions: languages,
      stdin: true,
      files: allFileFeatures,
      network: "none",
      // The memory of an interpreter that lives on is not that of a block.
      usage: process.platform === "linux" ? ["processorMs"] : [],
      ...(checked.packages === undefined && { packages: [] }),
      isolation: "wasm",
      kernel: "user-space",
    };
  }

  protected readonly offered: ExecutorCapabilities;

  get #languages(): readonly WasmLanguage[] {
    const { languages } = this.#options;
    return languages === undefined ? wasmLanguages : wasmLanguages.filter((each) => languages.includes(each));
  }

  dumpComponent(): ComponentModel {
    return WasmCodeExecutor.component.dump({ ...this.#given });
  }

  /**
   * Whether the interpreters also run inside an OS sandbox, and if not, why; `undefined` before the first start.
   * `capabilities.isolation` is `"wasm"` either way.
   */
  get osSandbox(): OsSandboxUse | undefined {
    return this.#osSandbox;
  }

  protected async openBackend(signal: AbortSignal): Promise<WasmBackend> {
    const use = await chooseOsSandbox(this.#options.osSandbox ?? "auto");
    this.#osSandbox = use;
    return WasmBackend.create(
      {
        id: this.id,
        sandboxed: use.used,
        languages: this.#languages,
        functionsModule: this.#options.functionsModule ?? "functions",
        memoryBytes: this.#options.memoryBytes ?? 512 * mebibyte,
        storageBytes: this.#options.storageBytes ?? 256 * mebibyte,
        cacheDirectory: this.#options.cacheDirectory,
        packages: this.#options.packages,
        outputDir: this.#options.outputDir,
      },
      signal,
    );
  }
}
