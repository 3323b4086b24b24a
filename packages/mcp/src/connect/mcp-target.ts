import { stringsOption } from "@fenced/core/options";
import * as z from "zod";

/** Another MCP server: a program to start and talk to over standard input and output, or an address. */
export type McpTarget = McpCommand | McpAddress;

/** An MCP server to start. Its standard error goes to this program's. */
export interface McpCommand {
  /** The program: a path, or a name on the `PATH`. Runs without a shell, and without a fence. */
  readonly command: string;
  /** Its arguments. Default: none. */
  readonly args?: readonly string[];
  /** Environment variables, added to a few harmless ones of this program, such as `HOME` and `PATH`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Working directory. Default: this program's. */
  readonly cwd?: string;
}

/** A running MCP server, over streamable HTTP. */
export interface McpAddress {
  /** The server's address, such as `https://tools.example/mcp`. */
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

/** The server's name in messages, without arguments and headers: these may contain secrets, and clients read messages. */
export function targetName(target: McpTarget): string {
  return "url" in target ? new URL(target.url).origin : target.command;
}
