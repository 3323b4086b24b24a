import { readFileSync } from "node:fs";
import { parseHostPattern } from "@fenced/core/network";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import * as z from "zod";

/** A mistake in the command line, for the user to fix. */
export class UsageError extends Error {}

/** A template as the command line has it: `base=python:3-slim`. */
export interface GivenTemplate {
  readonly name: string;
  /** An image, or `os-sandbox`. */
  readonly source: string;
}

/** Parsed command-line options. */
export interface CliOptions {
  readonly template: readonly GivenTemplate[];
  readonly port: number;
  readonly host: string;
  readonly domain?: string | undefined;
  readonly network?: "open" | "none" | undefined;
  /** Hosts that code can reach. */
  readonly allow?: readonly string[] | undefined;
  readonly maxSandboxes: number;
  /** How many executors of each template are kept started for the next sandboxes. */
  readonly ready: number;
  readonly state?: string | undefined;
}

const help = `
Examples:
  npx -y @fenced/e2b --template base=python:3-slim
  npx -y @fenced/e2b --template base=os-sandbox --allow "*"

Clients set E2B_API_KEY to the server's key, and both E2B_API_URL and E2B_SANDBOX_URL to its address, which is the first
line that the server prints. The key is that of FENCED_E2B_API_KEY, or a random one, which the server then prints.

A template is an image for Docker or Podman that has Python 3.8 or later, or os-sandbox, which shows this machine's
programs to the code. With --state, sandboxes outlive the server; without, they end with it. Without --network, code in
containers reaches only package indexes, and code in the OS sandbox nothing. Clients can narrow what --allow lists, by rules
of their own, and all of it with --network open. With --ready, a new sandbox is there at
once, unless it may not use the network or begins with a snapshot; those are started as before.`;

/**
 * @returns the options, or `undefined` if help was printed instead.
 * @throws UsageError if an option is unknown or wrong.
 */
export function parseOptions(args: readonly string[]): CliOptions | undefined {
  const command = createCommand();
  try {
    command.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new UsageError(`${error.message.replace(/^error: /, "")}\nAll options: fenced-e2b --help`);
  }
  const options = command.opts<CliOptions>();
  const names = options.template.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new UsageError(`--template: ${twice} is given twice.`);
  if (options.ready > 0 && options.state !== undefined) {
    throw new UsageError("--ready: it cannot be combined with --state, since what is ready ends with the server.");
  }
  return options;
}

function createCommand(): Command {
  return new Command("fenced-e2b")
    .description("A server that speaks E2B's protocol, for the unmodified package e2b.")
    .version(packageVersion())
    .addOption(
      new Option("--template <name=image>", "a template and its image, or os-sandbox; repeatable")
        .argParser(template)
        .default([], "base=python:3-slim"),
    )
    .option("--port <number>", "the port to listen on; 0 picks a free one", port, 0)
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .option("--domain <name>", "the domain whose subdomains lead to this server")
    .addOption(new Option("--network <policy>", "what code can reach").choices(["open", "none"]))
    .addOption(
      new Option("--allow <host>", "a host that code can reach: pypi.org, *.example.com:443, or * for all; repeatable")
        .argParser(host)
        .conflicts("network"),
    )
    .option("--max-sandboxes <number>", "maximum number of sandboxes that run", whole(1), 32)
    .option("--ready <number>", "how many sandboxes of each template to keep started for the next clients", whole(0), 0)
    .option("--state <directory>", "keeps sandboxes for the next server with the same directory")
    .addHelpText("after", help)
    .configureOutput({ writeErr: () => undefined })
    .exitOverride();
}

function template(text: string, before: readonly GivenTemplate[]): readonly GivenTemplate[] {
  const [, name, source] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name !== undefined && source !== undefined) return [...before, { name, source }];
  throw new InvalidArgumentError("It must be a name and an image, such as base=python:3-slim.");
}

function host(text: string, before: readonly string[] | undefined): readonly string[] {
  const pattern = parseHostPattern(text);
  if ("problem" in pattern) throw new InvalidArgumentError(`It ${pattern.problem}.`);
  return [...(before ?? []), text];
}

function whole(from: 0 | 1): (text: string) => number {
  return (text) => {
    if (/^(?:0|[1-9]\d{0,8})$/.test(text) && Number(text) >= from) return Number(text);
    throw new InvalidArgumentError(`It must be a whole number, at least ${from}.`);
  };
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return z.object({ version: z.string() }).parse(manifest).version;
}
