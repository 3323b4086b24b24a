import { startAcaEmulator, type AcaEmulator, type EmulatorOptions } from "@fenced/aca-emulator";
import type { CodeResult } from "@fenced/core";
import { ACADynamicSessionsCodeExecutor, type ACAExecutorOptions } from "../src/index.ts";

/** An emulator and the executors that a test creates for it; all of them end with the test. */
export class Setting implements AsyncDisposable {
  readonly emulator: AcaEmulator;
  readonly #executors: ACADynamicSessionsCodeExecutor[] = [];

  private constructor(emulator: AcaEmulator) {
    this.emulator = emulator;
  }

  static async open(options: EmulatorOptions = {}): Promise<Setting> {
    return new Setting(await startAcaEmulator(options));
  }

  /** By default, one with the transport `request`. */
  executor(options: Partial<ACAExecutorOptions> = {}): ACADynamicSessionsCodeExecutor {
    const executor = new ACADynamicSessionsCodeExecutor({
      poolManagementEndpoint: this.emulator.endpoint,
      transport: "request",
      ...(options.tokenVariable === undefined
        ? { credential: { getToken: async () => ({ token: this.emulator.token() }) } }
        : {}),
      ...options,
    });
    this.#executors.push(executor);
    return executor;
  }

  /** Ends a session as its cooldown does: its identifier is rejected from then on. */
  async expire(identifier = ""): Promise<void> {
    this.emulator.provoke({ kind: "expired-session", on: "session", times: 1 });
    const query = new URLSearchParams({ "api-version": "2025-10-02-preview", identifier });
    const headers = { authorization: `Bearer ${this.emulator.token()}` };
    await fetch(`${this.emulator.endpoint}/session?${query.toString()}`, { headers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.emulator.setFaults([]);
    await Promise.all(this.#executors.map((executor) => executor.stop().catch(() => {})));
    await this.emulator.stop();
  }
}

export async function run(
  executor: ACADynamicSessionsCodeExecutor,
  code: string,
  options: { language?: string; timeoutMs?: number; signal?: AbortSignal } = {},
): Promise<CodeResult> {
  const { language = "python", ...rest } = options;
  return executor.executeCodeBlocks([{ language, code }], rest);
}
