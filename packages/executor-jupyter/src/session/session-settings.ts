import type { FunctionWithRequirements } from "@fenced/core";
import type { JupyterServer } from "../servers/jupyter-server.ts";

/** What a kernel and its workspace are made from. */
export interface SlotSettings {
  /** The executor's name, unique in the world. */
  readonly id: string;
  readonly server: JupyterServer;
  readonly kernelName: string;
  readonly kernelId?: string;
  readonly workDir?: string;
  readonly outputDir?: string;
  readonly reconnectTimeoutMs: number;
  /** Environment variables for all blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** Told at once when variables are lost, because the kernel died or had to be replaced. */
  readonly onLost: (reason: string) => void;
  /** Modules of functions, name to source, that a kernel needs which takes the place of another; `undefined`: none ever. */
  readonly modules: () => Readonly<Record<string, string>> | undefined;
}

/** What a session is made from. */
export interface SessionSettings extends Omit<SlotSettings, "modules"> {
  /** Milliseconds that a cell gets to end after an interrupt. */
  readonly interruptGraceMs: number;
  /** The executor's own part of `env`. */
  readonly ownEnv: Readonly<Record<string, string>>;
  /** Told when another kernel is there, which has no functions of the host. */
  readonly onReplaced: () => void;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
}
