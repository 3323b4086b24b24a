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

/** A function of either kind or, in a component's config, the output of its `toJSON`. */
const functionOption: z.ZodType<FunctionWithRequirements | HostFunction> = z.union(
  [
    hostFunctionOption,
    objectOption<FunctionWithRequirements>(["toJSON"], "a FunctionWithRequirements"),
    z.record(z.string(), z.json()).transform((json) => FunctionWithRequirements.fromJSON(json)),
  ],
  "must be a FunctionWithRequirements or a host function: make one with fromString(), fromCallable() or hostFunction()",
);

/**
 * The schemas of the options common to all executors, to include in an executor's own schema.
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

/** What the base class validates, whatever options the executor adds. */
export const baseOptions: z.ZodType<BaseExecutorOptions> = z.looseObject(baseExecutorConfig);

/** Additional options of command-line executors. */
export interface CommandLineExecutorOptions {
  /** Languages to add, or to run with another command: `{ ruby: { extension: "rb", command: ["ruby"] } }`. */
  readonly languages?: Readonly<Record<string, LanguageCommand>>;
  /** Remove the files that blocks without a file name are written to. Default: true. */
  readonly cleanupTempFiles?: boolean;
}

/** The schemas of the additional options of command-line executors. */
export const commandLineExecutorConfig: OptionSchemas<CommandLineExecutorOptions> = {
  languages: z
    .record(z.string(), z.strictObject({ extension: z.string(), command: z.array(z.string()) }))
    .exactOptional(),
  cleanupTempFiles: z.boolean().exactOptional(),
};
