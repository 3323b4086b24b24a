import { type ApproveHostCall, FunctionWithRequirements, type HostFunction } from "@fenced/core";
import {
  callbackOption,
  environmentOption,
  hostFunctionOption,
  objectOption,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { z } from "zod";
import type { BaseExecutorOptions } from "./base-executor-options.ts";
import type { LanguageCommand } from "./languages/command-languages.ts";

/** A function of either kind, or in the config of a component what its `toJSON` wrote. */
const functionOption: z.ZodType<FunctionWithRequirements | HostFunction> = z.union(
  [
    hostFunctionOption,
    objectOption<FunctionWithRequirements>(["toJSON"], "a FunctionWithRequirements"),
    z.record(z.string(), z.json()).transform((json) => FunctionWithRequirements.fromJSON(json)),
  ],
  "must be a FunctionWithRequirements or a host function: make one with fromString(), fromCallable() or hostFunction()",
);

/**
 * The schemas of the options that all executors have, for the schema of an executor's own.
 *
 * @example
 * export const myExecutorOptions: z.ZodType<MyExecutorOptions> = optionsSchema({
 *   ...baseExecutorConfig,
 *   host: z.string(),
 * } satisfies OptionSchemas<MyExecutorOptions>);
 */
export const baseExecutorConfig: OptionSchemas<BaseExecutorOptions> = {
  timeoutMs: timeLimitOption.exactOptional(),
  totalTimeoutMs: timeLimitOption.exactOptional(),
  maxWorkspaceBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  onSessionLost: callbackOption<(reason: string) => void>().exactOptional(),
  maxOutputBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  env: environmentOption.exactOptional(),
  functions: z.array(functionOption).exactOptional(),
  functionsModule: z.string().exactOptional(),
  approveHostCall: callbackOption<ApproveHostCall>().exactOptional(),
  maxHostCalls: wholeNumberOption({ from: 0 }).exactOptional(),
};

/** What the base class checks, whatever the options of the executor's own. */
export const baseOptions: z.ZodType<BaseExecutorOptions> = z.looseObject(baseExecutorConfig);

/** The options that command-line executors have besides. */
export interface CommandLineExecutorOptions {
  /** Languages to add, or to run by another command: `{ ruby: { extension: "rb", command: ["ruby"] } }`. */
  readonly languages?: Readonly<Record<string, LanguageCommand>>;
  /** Remove the files into which blocks without a file name are written. Default: true. */
  readonly cleanupTempFiles?: boolean;
}

/** The schemas of the options that command-line executors have besides. */
export const commandLineExecutorConfig: OptionSchemas<CommandLineExecutorOptions> = {
  languages: z
    .record(z.string(), z.strictObject({ extension: z.string(), command: z.array(z.string()) }))
    .exactOptional(),
  cleanupTempFiles: z.boolean().exactOptional(),
};
