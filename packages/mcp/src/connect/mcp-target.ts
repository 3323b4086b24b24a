import { stringsOption } from "@fenced/core/options";
import * as z from "zod";

/** Another MCP server: a program that is started and spoken to over its standard input and output, or an address. */
export type McpTarget = McpCommand | McpAddress;

/** An MCP server that is started. What it writes to standard error goes to that of this program. */
export interface McpCommand {
  /** The program, as a path or a name on the `PATH`. It runs without a shell, and without any fence. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Its environment variables, besides a few harmless ones of this program, such as `HOME` and `PATH`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its working directory. Default: that of this program. */
  readonly cwd?: string;
}

/** An MCP server that runs already, over streamable HTTP. */
export interface McpAddress {
  /** Where it is, such as `https://tools.example/mcp`. */
  readonly url: string;
  /** Headers of each request, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
}

const httpUrl = z
  .string()
  .refine(
    (text) => /^https?:/.test(text) && URL.canParse(text),
    "must be an address that begins with https:// or http://",
  );

const command: z.ZodType<McpCommand> = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()).exactOptional(),
  env: stringsOption.exactOptional(),
  cwd: z.string().exactOptional(),
});

const address: z.ZodType<McpAddress> = z.strictObject({ url: httpUrl, headers: stringsOption.exactOptional() });

/** The schema of the option. */
export const mcpTargetsOption: z.ZodType<readonly McpTarget[]> = z.array(
  z.union([command, address], 'must be { command, args, env, cwd } or { url: "https://…", headers }'),
);

/** What messages call it. Arguments and headers may hold secrets, and clients read messages. */
export function targetName(target: McpTarget): string {
  return "url" in target ? new URL(target.url).origin : target.command;
}
