import { InvalidArgumentError } from "commander";
import type { McpTarget } from "../connect/mcp-target.ts";

/**
 * What `--connect` says: an address, or a command with its arguments. Quotes keep words together as in a shell, but there is none:
 * nothing else in the text means anything, a backslash in a Windows path neither. The command has this program's environment, in
 * which hosts put the keys of servers, without the token of this one.
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
    throw new InvalidArgumentError("A quote in it is not closed.");
  });
}
