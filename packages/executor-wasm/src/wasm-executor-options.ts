import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { baseExecutorConfig, type BaseExecutorOptions, noKeepAlive } from "@fenced/executor-kit";
import * as z from "zod";
import { wasmPackages, type WasmPackages } from "./packages/package-options.ts";

/** A language that runs in WebAssembly. */
export type WasmLanguage = "python" | "javascript" | "typescript";

/** Options of `WasmCodeExecutor`; all are optional. */
export interface WasmExecutorOptions extends BaseExecutorOptions {
  /**
   * Languages that blocks may use. Without Python, the executor starts in a fraction of the time. Default: all three.
   */
  readonly languages?: readonly WasmLanguage[] | undefined;
  /**
   * Memory limit of each interpreter in bytes, between 64 MiB and 4 GiB. Beyond it, Python raises `MemoryError`, and
   * JavaScript throws `InternalError: out of memory`. Memory that this limit does not cover, such as file buffers, ends the
   * program once the process uses 512 MiB more than the limit. Default: 512 MiB.
   */
  readonly memoryBytes?: number | undefined;
  /**
   * Limit for the session's files in bytes, at least 1 MiB. They are in this process's memory; beyond the limit, the
   * program gets `ENOSPC`. Default: 256 MiB.
   */
  readonly storageBytes?: number | undefined;
  /**
   * Absolute path of the directory that caches the snapshot that Python starts from, 30 MB for each version, and unpacked
   * `packages`. A directory that other users may write to is not used. Default: `fenced` in the user's cache directory.
   */
  readonly cacheDirectory?: string | undefined;
  /** Python packages besides the standard library, installed before the first block. Default: none. */
  readonly packages?: WasmPackages | undefined;
  /**
   * Directory on this host where pictures and other rich outputs of Python blocks are saved, created if it is missing.
   * Default: a temporary one, deleted when the executor stops.
   */
  readonly outputDir?: string | undefined;
  /**
   * Also run the interpreters' processes inside an OS sandbox, as a third barrier. Linux only; needs bubblewrap. `true`:
   * the start fails without it. `"auto"`: use it where it works; `executor.osSandbox` says whether. Default: `"auto"`.
   */
  readonly osSandbox?: boolean | "auto" | undefined;
}

/** All languages. */
export const wasmLanguages: readonly WasmLanguage[] = ["python", "javascript", "typescript"];
const mebibyte = 1_048_576;

/** Validates the options, and the executor's config in a component model. */
export const wasmExecutorOptions: z.ZodType<WasmExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  languages: z.array(z.enum(wasmLanguages)).min(1).exactOptional(),
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
  packages: wasmPackages.exactOptional(),
  outputDir: z.string().min(1).exactOptional(),
  osSandbox: z.union([z.boolean(), z.literal("auto")]).exactOptional(),
  ...noKeepAlive("is not possible in WebAssembly, whose files are in this program's memory: take checkpoints"),
} satisfies OptionSchemas<WasmExecutorOptions>).superRefine(({ languages, packages, outputDir }, { issues }) => {
  if (languages === undefined || languages.includes("python")) return;
  for (const [name, input] of Object.entries({ packages, outputDir })) {
    const message = "needs python among the `languages`: only Python has packages and rich outputs";
    if (input !== undefined) issues.push({ code: "custom", path: [name], input, message });
  }
});
