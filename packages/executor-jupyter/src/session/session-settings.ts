import type { FunctionWithRequirements } from "@fenced/core";
import type { JupyterExecutorOptions } from "../jupyter-executor-options.ts";
import type { JupyterServer } from "../servers/jupyter-server.ts";

/** Settings of a session. */
export interface SessionSettings extends Pick<JupyterExecutorOptions, "kernelId" | "workDir" | "outputDir"> {
  /** The absolute path of `workDir` on this host, for servers whose kernels are processes of this host. */
  readonly hostWorkDir: string | undefined;
  /** The executor's globally unique id. */
  readonly id: string;
  readonly server: JupyterServer;
  readonly kernelName: string;
  readonly reconnectTimeoutMs: number;
  /** Milliseconds that a cell has to end after an interrupt. */
  readonly interruptGraceMs: number;
  /** Environment variables for all blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** The executor's own part of `env`. */
  readonly ownEnv: Readonly<Record<string, string>>;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
}
