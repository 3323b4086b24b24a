import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import { z } from "zod";

/** Settings of `ExampleCodeExecutor`; none is required. */
export interface ExampleExecutorOptions extends BaseExecutorOptions {
  /** Remove the files into which blocks without a file name are written. Default: true. */
  readonly cleanupTempFiles?: boolean;
}

/** The shape of the executor's config in a component model. */
export const exampleExecutorConfig: z.ZodType<ExampleExecutorOptions> = z.strictObject({
  ...baseExecutorConfig,
  cleanupTempFiles: z.boolean().exactOptional(),
});
