import { z } from "zod";

/** The newest API version, and the default. */
export const currentVersion = "2025-10-02-preview";

/** The version whose calls have the older shape. */
export const olderVersion = "2024-02-02-preview";

/** The largest file that the service takes, in bytes. */
export const uploadLimit: number = 128 * 1024 * 1024;

/** Seconds that a synchronous execution may take. */
export const syncLimitSeconds = 220;

/** An execution, as far as it goes. */
export interface WireExecution {
  readonly id?: string | null | undefined;
  readonly status: string;
  readonly error?:
    | { readonly code?: string | null | undefined; readonly message?: string | null | undefined }
    | null
    | undefined;
  readonly result?: WireResult | null | undefined;
}

/** What an execution left. */
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

/** What `POST executions` and `GET executions/{id}` answer; a pool that wants bodies wrapped may wrap its own. */
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

/** What `GET files` answers. */
export const fileListSchema: z.ZodType<{ value: WireFile[]; nextLink?: string | null | undefined }> = z.object({
  value: z.array(fileEntry),
  nextLink: z.string().nullish(),
});

const packageEntry = z.union([z.string(), z.object({ name: z.string() }).transform(({ name }) => name)]);

/** What `GET metadata` answers. Nothing in it is certain to be there. */
export const metadataSchema: z.ZodType<{ runtimes: string; packages: string[] }> = z
  .object({
    runtimes: z.unknown().optional(),
    jupyterKernel: z.unknown().optional(),
    preInstalledPackages: z.array(z.unknown()).nullish().catch(null),
  })
  .transform(({ runtimes, jupyterKernel, preInstalledPackages }) => ({
    runtimes: JSON.stringify([runtimes ?? null, jupyterKernel ?? null]),
    packages: (preInstalledPackages ?? []).flatMap((each) => packageEntry.safeParse(each).data ?? []),
  }));

/** What `POST code/execute` of the older API answers. */
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

/** What `GET files` of the older API answers. */
export const olderFileListSchema: z.ZodType<{ value: { properties: { filename: string; size: number } }[] }> = z.object(
  {
    value: z.array(z.object({ properties: z.object({ filename: z.string(), size: z.number() }) })),
  },
);

const storedFile = z.object({ sizeInBytes: z.number() }).transform(({ sizeInBytes }) => sizeInBytes);
const olderStoredFile = z
  .object({ value: z.tuple([z.object({ properties: z.object({ size: z.number() }) })]) })
  .transform(({ value: [{ properties }] }) => properties.size);

/** What an upload answers, in both shapes: how many bytes were stored. Nothing in it is certain to be there. */
export const storedSizeSchema: z.ZodType<number | undefined> = z.union([
  storedFile,
  olderStoredFile,
  z.unknown().transform(() => undefined),
]);
