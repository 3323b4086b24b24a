import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import * as z from "zod";

/** Options of `WasmCodeExecutor`; all are optional. */
export interface WasmExecutorOptions extends BaseExecutorOptions {
  /**
   * Memory limit of a program in bytes, from 64 MiB to 4 GiB. Beyond it, Python raises `MemoryError`. Memory that the
   * interpreter's limit does not count (its file system's buffers, for example) ends the program once the process uses
   * 512 MiB more than this. Default: 512 MiB.
   */
  readonly memoryBytes?: number;
  /**
   * Limit on the session's files, which are in this process's memory, in bytes; beyond it, the program gets `ENOSPC`.
   * Default: 256 MiB.
   */
  readonly storageBytes?: number;
  /**
   * Absolute path of the directory for the snapshot that Python starts from; 30 MB for each version. Default: `fenced`
   * in the user's cache directory. A directory that others may write to is not used.
   */
  readonly cacheDirectory?: string;
}

const mebibyte = 1_048_576;

/** Validates the options, and the executor's config in a component model. */
export const wasmExecutorOptions: z.ZodType<WasmExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  memoryBytes: z
    .int()
    .min(64 * mebibyte)
    .max(4096 * mebibyte)
    .exactOptional(),
  storageBytes: z.int().min(mebibyte).exactOptional(),
  cacheDirectory: z
    .string()
    .regex(/^(?:\/|[A-Za-z]:[\\/])/, "must be an absolute path")
    .exactOptional(),
} satisfies OptionSchemas<WasmExecutorOptions>);
