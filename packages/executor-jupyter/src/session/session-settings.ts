import type { FunctionWithRequirements, JsonObject } from "@fenced/core";
import type { JupyterExecutorOptions } from "../jupyter-executor-options.ts";
import type { JupyterServer } from "../servers/jupyter-server.ts";
import type { LeftKernel } from "./left-kernel.ts";

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
  /** How long the session outlives its program, in milliseconds; 0: not at all. */
  readonly keepAliveMs: number;
  /** What the server wants to see, for the handle of a session that outlives its program. */
  readonly secrets: JsonObject;
  /** The session of an earlier program. Default: a new one. */
  readonly left: LeftKernel | undefined;
}
