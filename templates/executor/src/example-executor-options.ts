import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import { z } from "zod";

/** Settings of `ExampleCodeExecutor`; none is required. */
export interface ExampleExecutorOptions extends BaseExecutorOptions {
  /** Remove the files into which blocks without a file name are written. Default: true. */
  readonly cleanupTempFiles?: boolean;
}

/** Checks the options, and the executor's config in a component model. */
export const exampleExecutorOptions: z.ZodType<ExampleExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  cleanupTempFiles: z.boolean().exactOptional(),
} satisfies OptionSchemas<ExampleExecutorOptions>);
