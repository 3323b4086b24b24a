import { z } from "zod";

/** The newest API version, and the default. */
export const currentVersion = "2025-10-02-preview";

/** The version whose requests have the older shape. */
export const olderVersion = "2024-02-02-preview";

/** The largest file that the service accepts, in bytes. */
export const uploadLimit: number = 128 * 1024 * 1024;

/** Seconds that a synchronous execution may take. */
export const syncLimitSeconds = 220;

/** An execution and its state so far. */
export interface WireExecution {
  readonly id?: string | null | undefined;
  readonly status: string;
  readonly error?:
    | { readonly code?: string | null | undefined; readonly message?: string | null | undefined }
    | null
    | undefined;
  readonly result?: WireResult | null | undefined;
}

/** The results of an execution. */
interface WireResult {
  readonly stdout?: string | null | undefined;
  readonly stderr?: string | null | undefined;
  readonly executionResult?: unknown;
}

const execution: z.ZodType<WireExecution> = z.object({
  id: z.string().nullish(),
  status: z.union([z.string(), z.number()]).transform(String),
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }).nullish(),
  result: z
    .object({ stdout: z.string().nullish(), stderr: z.string().nullish(), executionResult: z.unknown().optional() })
    .nullish(),
});

/** The answer to `POST executions` and `GET executions/{id}`; a pool that expects wrapped bodies may wrap its own. */
export const executionSchema: z.ZodType<WireExecution> = z.union([
  z.object({ properties: execution }).transform(({ properties }) => properties),
  execution,
]);

/** An entry of a list of files. */
export interface WireFile {
  readonly name: string;
  readonly type?: string | null | undefined;
  readonly sizeInBytes?: number | null | undefined;
}

const fileEntry: z.ZodType<WireFile> = z.object({
  name: z.string(),
  type: z.string().nullish(),
  sizeInBytes: z.number().nullish(),
});

/** The answer to `GET files`. */
export const fileListSchema: z.ZodType<{ value: WireFile[]; nextLink?: string | null | undefined }> = z.object({
  value: z.array(fileEntry),
  nextLink: z.string().nullish(),
});

const packageEntry = z.union([z.string(), z.object({ name: z.string() }).transform(({ name }) => name)]);

/** What a pool's sessions run. */
export type PoolType = "PythonLTS" | "NodeLTS" | "Shell";

/** What a pool reports about its sessions. */
export interface PoolMetadata {
  /** `undefined` if it reports no known type. */
  readonly poolType: PoolType | undefined;
  /** Names of its sessions' packages. */
  readonly packages: readonly string[];
}

/** The answer to `GET metadata`. Any field may be missing. */
export const metadataSchema: z.ZodType<PoolMetadata> = z
  .object({
    runtimes: z.unknown().optional(),
    jupyterKernel: z.unknown().optional(),
    preInstalledPackages: z.array(z.unknown()).nullish().catch(null),
  })
  .transform(({ runtimes, jupyterKernel, preInstalledPackages }) => ({
    poolType: poolTypeOf(JSON.stringify([runtimes ?? null, jupyterKernel ?? null])),
    packages: (preInstalledPackages ?? []).flatMap((each) => packageEntry.safeParse(each).data ?? []),
  }));

function poolTypeOf(runtimes: string): PoolType | undefined {
  if (/python/i.test(runtimes)) return "PythonLTS";
  if (/node/i.test(runtimes)) return "NodeLTS";
  return /shell|bash/i.test(runtimes) ? "Shell" : undefined;
}

/** The older API's answer to `POST code/execute`. */
export const olderExecutionSchema: z.ZodType<{
  properties: {
    status: string;
    stdout?: string | null | undefined;
    stderr?: string | null | undefined;
    result?: unknown;
  };
}> = z.object({
  properties: z.object({
    status: z.string(),
    stdout: z.string().nullish(),
    stderr: z.string().nullish(),
    result: z.unknown().optional(),
  }),
});

/** The older API's answer to `GET files`. */
export const olderFileListSchema: z.ZodType<{ value: { properties: { filename: string; size: number } }[] }> = z.object(
  {
    value: z.array(z.object({ properties: z.object({ filename: z.string(), size: z.number() }) })),
  },
);

const storedFile = z.object({ sizeInBytes: z.number() }).transform(({ sizeInBytes }) => sizeInBytes);
const olderStoredFile = z
  .object({ value: z.tuple([z.object({ properties: z.object({ size: z.number() }) })]) })
  .transform(({ value: [{ properties }] }) => properties.size);

/** The answer to an upload, in both shapes: how many bytes were stored. Any field may be missing. */
export const storedSizeSchema: z.ZodType<number | undefined> = z.union([
  storedFile,
  olderStoredFile,
  z.unknown().transform(() => undefined),
]);
