import type { ModelOutputLimits } from "@fenced/core";
import { millisecondsOption, modelOutputLimits, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { ApprovedCalls } from "./connect/connected-servers.ts";
import { type McpTarget, mcpTargetsOption } from "./connect/mcp-target.ts";

/** What a server offers, and limits of what it returns; none is required. */
export interface McpServerOptions extends ModelOutputLimits {
  /** Maximum bytes of a file that `read_file` returns. Default: 3,750,000, which is 5 MB in base64. */
  readonly maxFileBytes?: number;
  /** Maximum number of files that `list_files` returns. Default: 1,000. */
  readonly maxFiles?: number;
  /**
   * Other MCP servers, whose tools the code can call as functions: their signatures are in the description of `run_code`. Each server
   * has connections of its own, which `connect` opens and `close` ends, as does the client when it goes away. Needs an executor with
   * `capabilities.hostFunctions`. Default: none.
   */
  readonly connect?: readonly McpTarget[];
  /**
   * Which calls of their tools the client's user is asked about, by MCP's elicitation, while the code waits: `"writes"`, those of tools
   * that their server does not mark as read-only; `"all"`; or `"none"`. Calls that the client cannot ask about are refused.
   * Default: `"writes"`.
   */
  readonly approveCalls?: ApprovedCalls;
  /** Milliseconds that each of these servers may take for its first answer, and for the list of its tools. Default: 30,000. */
  readonly connectTimeoutMs?: number;
}

/** The schemas of the options. */
export const serverLimits: OptionSchemas<McpServerOptions> = {
  ...modelOutputLimits,
  maxFileBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  maxFiles: wholeNumberOption({ from: 0 }).exactOptional(),
  connect: mcpTargetsOption.exactOptional(),
  approveCalls: z.enum(["writes", "all", "none"]).exactOptional(),
  connectTimeoutMs: millisecondsOption.exactOptional(),
};
