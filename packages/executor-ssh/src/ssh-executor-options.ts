import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type LanguageCommand,
} from "@fenced/executor-kit";
import { z } from "zod";

/** Settings of `SshCommandLineCodeExecutor`. */
export interface SshExecutorOptions extends BaseExecutorOptions {
  /** The host, as `ssh` takes it: a name, an address, or an alias of its configuration. It must run Linux. */
  readonly host: string;
  /** Whom to log in as. Default: what ssh's configuration says, else this program's user. */
  readonly user?: string;
  /** Default: what ssh's configuration says, else 22. */
  readonly port?: number;
  /** A file with a private key. Default: what ssh's configuration says, and the agent's keys. */
  readonly identityFile?: string;
  /** A configuration file to use instead of the user's and the system's. Default: these. */
  readonly configFile?: string;
  /**
   * Further options as in ssh_config(5), by name: `{ ProxyJump: "gate", StrictHostKeyChecking: "accept-new" }`. Those
   * that this executor sets itself cannot be given.
   */
  readonly options?: Readonly<Record<string, string>>;
  /**
   * The blocks' working directory on the remote host, absolute, or relative to the home there; made if missing, never
   * deleted. Default: a temporary one, deleted by `stop()`.
   */
  readonly workDir?: string;
  /** Languages to add, or to run by another command: `{ ruby: { extension: "rb", command: ["ruby"] } }`. */
  readonly languages?: Readonly<Record<string, LanguageCommand>>;
  /** Remove the files into which blocks without a file name are written. Default: true. */
  readonly cleanupTempFiles?: boolean;
}

/** The shape of the executor's config in a component model. */
export const sshExecutorConfig: z.ZodType<SshExecutorOptions> = z.strictObject({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  host: z.string(),
  user: z.string().exactOptional(),
  port: z.number().exactOptional(),
  identityFile: z.string().exactOptional(),
  configFile: z.string().exactOptional(),
  options: z.record(z.string(), z.string()).exactOptional(),
  workDir: z.string().exactOptional(),
});
