import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import * as z from "zod";

/** Settings of `WasmCodeExecutor`; none is required. */
export interface WasmExecutorOptions extends BaseExecutorOptions {
  /**
   * Bytes of memory that a program may take. Beyond that Python raises `MemoryError`, and what the limit of the
   * interpreter does not count (buffers of its file system, for example) ends the program when it takes 512 MiB more than this.
   * From 64 MiB to 4 GiB. Default: 512 MiB.
   */
  readonly memoryBytes?: number;
  /** Bytes that the session's files may take in this process's memory; the program then gets `ENOSPC`. Default: 256 MiB. */
  readonly storageBytes?: number;
  /**
   * Where the snapshot that Python starts from is kept, 30 MB for each version: an absolute path. Default: `fenced` in the user's
   * cache directory. Nothing is kept in a directory that others may write to.
   */
  readonly cacheDirectory?: string;
}

const mebibyte = 1_048_576;

/** Checks the options, and the executor's config in a component model. */
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
