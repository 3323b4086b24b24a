import { millisecondsOption, objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { baseExecutorConfig, type BaseExecutorOptions, noKeepAlive } from "@fenced/executor-kit";
import { z } from "zod";
import type { PoolType } from "./api/wire-types.ts";
import type { AccessTokenSource } from "./token-credential.ts";

/** Settings of `ACADynamicSessionsCodeExecutor`; only the pool's address is required. */
export interface ACAExecutorOptions extends BaseExecutorOptions {
  /** The session pool's address: its property `poolManagementEndpoint`. It must be `https`, unless it is on this host. */
  readonly poolManagementEndpoint: string;
  /** The source of tokens. Default: `DefaultAzureCredential` of `@azure/identity`, which must then be installed. */
  readonly credential?: AccessTokenSource | undefined;
  /** An environment variable of this process that holds a token, as an alternative to `credential`; read for each call. */
  readonly tokenVariable?: string | undefined;
  /** The first session's identifier, 4 to 128 characters long. Default: a new one. */
  readonly sessionId?: string | undefined;
  /** Keep the session when the executor stops, until its cooldown is over. Default: false. */
  readonly keepSession?: boolean | undefined;
  /** Leave the value of a block's last expression out of its output. Default: false. */
  readonly suppressResultOutput?: boolean | undefined;
  /**
   * The host directory for pictures and for the files of `downloadFiles`; created if missing, never deleted. Default:
   * a temporary one for pictures, deleted by `stop()`, and this process's directory for downloads.
   */
  readonly outputDir?: string | undefined;
  /**
   * The version of the service's API. `2024-02-02-preview` has differently shaped requests and fewer features. Default:
   * `2025-10-02-preview`.
   */
  readonly apiVersion?: string | undefined;
  /** The type of the pool, which decides what its sessions run. Default: what the pool's metadata reports. */
  readonly poolType?: PoolType | undefined;
  /**
   * Whether code in the pool's sessions reaches other hosts (`EgressEnabled`) or not (`EgressDisabled`), as the pool was
   * created. The service does not report it: with this option, `capabilities.network` and what models read about the
   * executor say it. It changes nothing in the pool. Default: not known.
   */
  readonly egress?: "EgressEnabled" | "EgressDisabled" | undefined;
  /**
   * How blocks run in Python pools. `pump`: in a thread of the session's interpreter that short requests poll, so output
   * is live, host functions work, and an abort keeps the session if the Python code can be interrupted. `request`: one
   * request per block, whose answer contains all of its output. Default: `pump`; other pools support only `request`.
   */
  readonly transport?: "pump" | "request" | undefined;
  /** How long to retry a call, if that is safe, while the service is busy or unreachable, in milliseconds. Default: 30,000. */
  readonly retryForMs?: number | undefined;
}

/** Checks the options, and the executor's config in a component model. */
export const acaExecutorOptions: z.ZodType<ACAExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  poolManagementEndpoint: z.string(),
  credential: objectOption<AccessTokenSource>(["getToken"], "a credential, with the method getToken").exactOptional(),
  tokenVariable: z.string().min(1).exactOptional(),
  sessionId: z
    .string()
    .regex(/^.{4,128}$/s, "must be 4 to 128 characters long")
    .exactOptional(),
  keepSession: z.boolean().exactOptional(),
  suppressResultOutput: z.boolean().exactOptional(),
  outputDir: z.string().min(1).exactOptional(),
  apiVersion: z.string().min(1).exactOptional(),
  poolType: z.enum(["PythonLTS", "NodeLTS", "Shell"]).exactOptional(),
  egress: z.enum(["EgressEnabled", "EgressDisabled"]).exactOptional(),
  transport: z.enum(["pump", "request"]).exactOptional(),
  retryForMs: millisecondsOption.exactOptional(),
  ...noKeepAlive(
    "is not possible in a session pool, where a program that was cut off could still change files and the pool's cooldown " +
      "ends sessions: take checkpoints, or keep a session with `keepSession` and connect to it with `sessionId`",
  ),
} satisfies OptionSchemas<ACAExecutorOptions>).refine(
  ({ credential, tokenVariable }) => credential === undefined || tokenVariable === undefined,
  { path: ["tokenVariable"], error: "cannot be combined with `credential`: remove one of them" },
);
