import type { CodeExecutor } from "@fenced/core";
import { callbackOption, optionsSchema, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { sessionOptions, type McpSessionsOptions, type McpSessionStart } from "./mcp-handler-options.ts";

/** Options of `startMcpHttpServer`. */
export interface McpHttpServerOptions extends McpSessionsOptions {
  /** Creates the executor of one session. The server owns it and stops it when the session ends. */
  readonly createExecutor: (start: Omit<McpSessionStart<unknown>, "user">) => CodeExecutor | Promise<CodeExecutor>;
  /** The port to listen on; 0 picks a free one. Default: 0. */
  readonly port?: number;
  /**
   * The address to listen on, which is also allowed as a host name. Default: `127.0.0.1`, which only programs on this
   * machine can reach.
   */
  readonly host?: string;
  /** The token that clients send as `Authorization: Bearer ...`: at least 16 visible ASCII characters. Default: a random one. */
  readonly token?: string;
}

/** Checks the options. */
export const mcpHttpServerOptions: z.ZodType<McpHttpServerOptions> = optionsSchema({
  ...sessionOptions,
  createExecutor: callbackOption<McpHttpServerOptions["createExecutor"]>(),
  port: wholeNumberOption({ from: 0, to: 65_535 }).exactOptional(),
  host: z.string().min(1).exactOptional(),
  token: z
    .string()
    .regex(/^[\x21-\x7e]{16,}$/, "must be at least 16 visible ASCII characters")
    .exactOptional(),
} satisfies OptionSchemas<McpHttpServerOptions>);
