import type { FunctionWithRequirements } from "@fenced/core";
import type { JupyterServer } from "../servers/jupyter-server.ts";

/** Settings of a kernel and its workspace. */
export interface SlotSettings {
  /** The executor's globally unique id. */
  readonly id: string;
  readonly server: JupyterServer;
  readonly kernelName: string;
  readonly kernelId?: string;
  readonly workDir?: string;
  readonly outputDir?: string;
  readonly reconnectTimeoutMs: number;
  /** Environment variables for all blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** Called at once when variables are lost because the kernel died or had to be replaced. */
  readonly onLost: (reason: string) => void;
  /** Modules of functions, name to source, that a replacement kernel needs; `undefined` if there are none, ever. */
  readonly modules: () => Readonly<Record<string, string>> | undefined;
}

/** Settings of a session. */
export interface SessionSettings extends Omit<SlotSettings, "modules"> {
  /** Milliseconds that a cell has to end after an interrupt. */
  readonly interruptGraceMs: number;
  /** The executor's own part of `env`. */
  readonly ownEnv: Readonly<Record<string, string>>;
  /** Called when a replacement kernel has started, which has no host functions yet. */
  readonly onReplaced: () => void;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
}
