import { InvalidArgumentError } from "commander";
import type { McpTarget } from "../connect/mcp-target.ts";

/**
 * Parses the value of `--connect`: an address, or a command with its arguments. Quotes group words as in a shell, but
 * there is no shell: no other character is special, not even the backslash in a Windows path. The command gets this
 * program's environment, where hosts put the keys of servers, without this server's token.
 *
 * @throws InvalidArgumentError if it is neither.
 */
export function parseTarget(text: string): McpTarget {
  if (/^https?:\/\//i.test(text)) {
    if (URL.canParse(text)) return { url: text };
    throw new InvalidArgumentError("It must be a valid address, or a command.");
  }
  const [command, ...args] = words(text);
  if (command === undefined || command === "") throw new InvalidArgumentError("It must be a command, or an address.");
  const { FENCED_MCP_TOKEN: _, ...env } = process.env;
  const set = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return { command, args, env: Object.fromEntries(set) };
}

function words(text: string): string[] {
  const found = text.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+|\S+/g) ?? [];
  return found.map((word) => {
    const bare = word.replaceAll(
      /"([^"]*)"|'([^']*)'/g,
      (_, double?: string, single?: string) => double ?? single ?? "",
    );
    if (/^(?:"[^"]*"|'[^']*'|[^\s"'])+$/.test(word)) return bare;
    throw new InvalidArgumentError("It has an unclosed quote.");
  });
}
