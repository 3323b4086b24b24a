import type { JupyterServer } from "../servers/jupyter-server.ts";

/** What a session is made from. */
export interface SessionSettings {
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
  /** Modules of functions, name to source, that a kernel needs which takes the place of another; `undefined`: none ever. */
  readonly modules: () => Readonly<Record<string, string>> | undefined;
}
