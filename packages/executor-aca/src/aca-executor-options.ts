import { FunctionWithRequirements, type JsonValue } from "@fenced/core";
import type { BaseExecutorOptions } from "@fenced/executor-kit";
import { z } from "zod";
import type { PoolType } from "./api/pool-metadata.ts";
import type { AccessTokenSource } from "./token-credential.ts";

/** Settings of `ACADynamicSessionsCodeExecutor`; only the pool's address is required. */
export interface ACAExecutorOptions extends BaseExecutorOptions {
  /** The session pool's address: its property `poolManagementEndpoint`. `https`, unless it is on this host. */
  readonly poolManagementEndpoint: string;
  /** Gives the tokens. Default: `DefaultAzureCredential` of `@azure/identity`, which must be installed then. */
  readonly credential?: AccessTokenSource;
  /** An environment variable of this process that holds a token, read for each call, instead of a `credential`. */
  readonly tokenVariable?: string;
  /** The first session's identifier, 4 to 128 characters. Default: a new one. */
  readonly sessionId?: string;
  /** Let the session live when the executor stops, until its cooldown is over. Default: false. */
  readonly keepSession?: boolean;
  /** Leave the value of a block's last expression out of its output. Default: false. */
  readonly suppressResultOutput?: boolean;
  /**
   * The host's directory in which pictures are saved and which `uploadFiles` and `downloadFiles` start from; made if
   * missing, never deleted. Default: a temporary one for pictures, deleted by `stop()`, and this process's directory.
   */
  readonly workDir?: string;
  /** The version of the service's API. `2024-02-02-preview` has another shape and less to offer. Default: `2025-10-02-preview`. */
  readonly apiVersion?: string;
  /** What the pool's sessions run. Default: what the pool's metadata says. */
  readonly poolType?: PoolType;
  /** Milliseconds for which a call is repeated, where that is safe, while the service is busy or away. Default: 30,000. */
  readonly retryForMs?: number;
}

/** The shape of the executor's config in a component model. */
export const acaExecutorConfig: z.ZodType<ACAExecutorOptions> = z.strictObject({
  poolManagementEndpoint: z.string(),
  timeoutMs: z.number().exactOptional(),
  maxOutputBytes: z.number().exactOptional(),
  env: z.record(z.string(), z.string()).exactOptional(),
  functions: z.array(z.json().transform((json: JsonValue) => FunctionWithRequirements.fromJSON(json))).exactOptional(),
  functionsModule: z.string().exactOptional(),
  tokenVariable: z.string().exactOptional(),
  sessionId: z.string().exactOptional(),
  keepSession: z.boolean().exactOptional(),
  suppressResultOutput: z.boolean().exactOptional(),
  workDir: z.string().exactOptional(),
  apiVersion: z.string().exactOptional(),
  poolType: z.enum(["PythonLTS", "NodeLTS", "Shell"]).exactOptional(),
  retryForMs: z.number().exactOptional(),
});
