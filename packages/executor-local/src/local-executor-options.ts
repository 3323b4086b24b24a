import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type LanguageCommand,
} from "@fenced/executor-kit";
import { z } from "zod";

/** Settings of `LocalCommandLineCodeExecutor`; none is required. */
export interface LocalExecutorOptions extends BaseExecutorOptions {
  /** The blocks' working directory; made if missing, never deleted. Default: a temporary one, deleted by `stop()`. */
  readonly workDir?: string;
  /** A virtual environment whose Python runs the blocks, made by `venv` or `uv`. Default: the Python on `PATH`. */
  readonly virtualEnv?: string;
  /** Languages to add, or to run by another command: `{ ruby: { extension: "rb", command: ["ruby"] } }`. */
  readonly languages?: Readonly<Record<string, LanguageCommand>>;
  /**
   * Names of this process's environment variables that blocks may see, besides what every program needs to run
   * (`PATH`, `HOME`, `LANG`, ...). Default: none, so that API keys stay out of code that a model wrote.
   */
  readonly inheritEnv?: readonly string[];
  /** Remove the files into which blocks without a file name are written. Default: true. */
  readonly cleanupTempFiles?: boolean;
}

/** The shape of the executor's config in a component model. */
export const localExecutorConfig: z.ZodType<LocalExecutorOptions> = z.strictObject({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  workDir: z.string().exactOptional(),
  virtualEnv: z.string().exactOptional(),
  inheritEnv: z.array(z.string()).exactOptional(),
});
