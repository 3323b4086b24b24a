import { FunctionWithRequirements, type JsonValue } from "@fenced/core";
import { z } from "zod";
import type { LanguageCommand } from "./languages/language-command.ts";

/**
 * The shapes of the options that all executors have, for the schema of an executor's own config.
 *
 * @example
 * const config: z.ZodType<MyOptions> = z.strictObject({ ...baseExecutorConfig, host: z.string() });
 */
export const baseExecutorConfig: {
  readonly timeoutMs: z.ZodExactOptional<z.ZodType<number>>;
  readonly maxOutputBytes: z.ZodExactOptional<z.ZodType<number>>;
  readonly env: z.ZodExactOptional<z.ZodType<Record<string, string>>>;
  readonly functions: z.ZodExactOptional<z.ZodType<FunctionWithRequirements[]>>;
  readonly functionsModule: z.ZodExactOptional<z.ZodType<string>>;
} = {
  timeoutMs: z.number().exactOptional(),
  maxOutputBytes: z.number().exactOptional(),
  env: z.record(z.string(), z.string()).exactOptional(),
  functions: z.array(z.json().transform((json: JsonValue) => FunctionWithRequirements.fromJSON(json))).exactOptional(),
  functionsModule: z.string().exactOptional(),
};

/** The shape of the options that command-line executors have besides. */
export const commandLineExecutorConfig: {
  readonly languages: z.ZodExactOptional<z.ZodType<Record<string, LanguageCommand>>>;
  readonly cleanupTempFiles: z.ZodExactOptional<z.ZodType<boolean>>;
} = {
  languages: z
    .record(z.string(), z.strictObject({ extension: z.string(), command: z.array(z.string()) }))
    .exactOptional(),
  cleanupTempFiles: z.boolean().exactOptional(),
};
