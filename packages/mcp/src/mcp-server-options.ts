import type { ModelOutputLimits } from "@fenced/core";
import {
  millisecondsOption,
  modelOutputLimits,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import type { ApprovedCalls } from "./connect/connected-servers.ts";
import { type McpTarget, mcpTargetsOption } from "./connect/mcp-target.ts";

/** Options of an MCP server; all are optional. */
export interface McpServerOptions extends ModelOutputLimits {
  /**
   * Milliseconds of silence after which a client that requests progress learns that its code is still running, so that
   * it does not give up on the call. Over HTTP, streams that are silent for as long get a comment, for the proxies in
   * between. Default: 10,000.
   */
  readonly heartbeatMs?: number | undefined;
  /**
   * Milliseconds after which `run_code` and `wait_for_code` answer that the code is still running, so that no client gives
   * up on it; the model then calls `wait_for_code`. The code's own time limit goes on. `Infinity`: only at its end. Default:
   * 50,000.
   */
  readonly answerAfterMs?: number | undefined;
  /** Maximum bytes of a file that `read_file` returns. Default: 3,750,000, which is 5 MB in base64. */
  readonly maxFileBytes?: number | undefined;
  /** Maximum number of files that `list_files` returns. Default: 1,000. */
  readonly maxFiles?: number | undefined;
  /**
   * Other MCP servers whose tools the code can call as functions; their signatures are in the description of
   * `run_code`. Each server created here has its own connections, which its `connect()` opens, and which end with
   * `close()` or when the client disconnects. Needs an executor with `capabilities.hostFunctions`. Default: none.
   */
  readonly connect?: readonly McpTarget[] | undefined;
  /**
   * Which calls of their tools the client's user must approve, through MCP elicitation, while the code waits:
   * `"writes"` (calls of tools that their server does not mark as read-only), `"all"` or `"none"`. If the client does
   * not support elicitation, these calls are refused. Default: `"writes"`.
   */
  readonly approveCalls?: ApprovedCalls | undefined;
  /** Time limit in milliseconds for each of these servers to answer and to list its tools. Default: 30,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** The default of `answerAfterMs`: clients of the official SDK give up after a minute, with or without progress. */
export const defaultAnswerAfterMs = 50_000;

/** The default of `heartbeatMs`: clients of the official SDK give up after a minute, some hosts after half of one. */
export const defaultHeartbeatMs = 10_000;

/** The schemas of the options. */
export const serverLimits: OptionSchemas<McpServerOptions> = {
  ...modelOutputLimits,
  heartbeatMs: wholeNumberOption({ from: 1, to: 2_147_483_647, unit: "milliseconds" }).exactOptional(),
  answerAfterMs: timeLimitOption.exactOptional(),
  maxFileBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  maxFiles: wholeNumberOption({ from: 0 }).exactOptional(),
  connect: mcpTargetsOption.exactOptional(),
  approveCalls: z.enum(["writes", "all", "none"]).exactOptional(),
  connectTimeoutMs: millisecondsOption.exactOptional(),
};
