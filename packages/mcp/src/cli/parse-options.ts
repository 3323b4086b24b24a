import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { ApprovedCalls } from "../connect/connected-servers.ts";
import type { McpTarget } from "../connect/mcp-target.ts";
import { packageVersion } from "../package-version.ts";
import { parseTarget } from "./parse-target.ts";
import { UsageError } from "./usage-error.ts";

/** Executors that `--executor` accepts; `--component` loads others. */
const executorNames = ["auto", "docker", "os-sandbox", "wasm", "local", "jupyter", "aca", "ssh"] as const;
export type ExecutorName = (typeof executorNames)[number];

/** Parsed command-line options. */
export interface CliOptions {
  readonly executor?: ExecutorName | undefined;
  readonly component?: string | undefined;
  readonly config?: string | undefined;
  readonly image?: string | undefined;
  readonly workDir?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly allowPackage: readonly string[];
  readonly http: boolean;
  readonly port: number;
  readonly host: string;
  readonly allowHost: readonly string[];
  readonly allowOrigin: readonly string[];
  readonly token?: string | undefined;
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  readonly pool?: number | undefined;
  readonly maxOutput: number;
  readonly connect: readonly McpTarget[];
  readonly approve: ApprovedCalls;
}

/** Options that only a server over HTTP has, by their keys in `CliOptions`. */
const httpOptions: ReadonlySet<string> = new Set<keyof CliOptions>([
  "port",
  "host",
  "allowHost",
  "allowOrigin",
  "token",
  "maxSessions",
  "sessionIdleMs",
  "pool",
]);

const help = `
Without --http it speaks MCP on standard input and output. Examples:
  npx -y @fenced/mcp
  npx -y @fenced/mcp --executor docker --image python:3.13-slim
  npx -y -p @fenced/mcp -p @fenced/executor-jupyter fenced-mcp --executor jupyter --http --port 3000
  npx -y @fenced/mcp --connect 'npx -y @modelcontextprotocol/server-github'

--executor auto opens the strongest fence that this machine has: a Docker or Podman container if the image is
already there, otherwise an OS sandbox, otherwise WebAssembly. local and jupyter run code on
this machine without a fence.
--executor aca reads the pool's endpoint from ACA_POOL_MANAGEMENT_ENDPOINT, and an optional token from ACA_TOKEN.
--executor ssh needs the host in --config: {"host":"an alias of ~/.ssh/config"}`;

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
    throw new UsageError(`${error.message.replace(/^error: /, "")}\nAll options: fenced-mcp --help`);
  }
  return check(command);
}

function createCommand(): Command {
  return new Command("fenced-mcp")
    .description("A Model Context Protocol server that runs code in a Fenced executor.")
    .version(packageVersion())
    .addOption(new Option("--executor <name>", "where the code runs (default: auto)").choices(executorNames))
    .option("--component <file>", "a JSON file with the component model of any executor, as dumpComponent returns it")
    .addOption(
      repeatable("--allow-package <name>", "allow --component to load a package outside @fenced/").argParser(collect),
    )
    .option("--config <json>", "more options of --executor as JSON; its README lists them")
    .option("--image <name>", "the image for Docker and Podman")
    .option("--work-dir <directory>", "where the code runs; stdio only (default: a temporary directory)")
    .option("--timeout-ms <number>", "time limit for a call, in milliseconds", wholeFrom1)
    .option("--max-output <characters>", "maximum characters of output in a result", wholeFrom1, 30_000)
    .addOption(
      repeatable(
        "--connect <server>",
        "an MCP server whose tools the code can call: its command, or its https:// address",
      ).argParser((text, before: readonly McpTarget[]) => [...before, parseTarget(text)]),
    )
    .addOption(
      new Option("--approve <calls>", "which of these calls the client's user must approve")
        .choices(["writes", "all", "none"])
        .default("writes"),
    )
    .option("--http", "serve streamable HTTP; each session gets its own executor", false)
    .option("--port <number>", "the port to listen on; 0 picks a free one", port, 0)
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .addOption(repeatable("--allow-host <name>", "another host name that clients may use").argParser(collect))
    .addOption(repeatable("--allow-origin <origin>", "an origin whose web pages may send requests").argParser(origins))
    .addOption(
      new Option("--token <text>", "the bearer token that clients must send (default: random)").env("FENCED_MCP_TOKEN"),
    )
    .option("--max-sessions <number>", "maximum number of sessions", wholeFrom1, 8)
    .option("--session-idle-ms <number>", "milliseconds after which an unused session ends", wholeFrom1, 1_800_000)
    .option("--pool <number>", "number of started executors to keep ready for new sessions; needs --http", wholeFrom1)
    .addHelpText("after", help)
    .configureOutput({ writeErr: () => undefined })
    .exitOverride();
}

function check(command: Command): CliOptions {
  const options = command.opts<CliOptions>();
  const { component, image, config, workDir, timeoutMs, http, connect } = options;
  const executor = options.executor ?? (component === undefined ? "auto" : undefined);
  if (component !== undefined && [executor, image, config, workDir, timeoutMs].some((value) => value !== undefined)) {
    throw new UsageError("--component describes the whole executor; remove the other executor options.");
  }
  if (http && workDir !== undefined) {
    throw new UsageError("--work-dir cannot be used with --http, where each session has its own temporary directory.");
  }
  const given = command.options.filter((option) => command.getOptionValueSource(option.attributeName()) === "cli");
  const needsHttp = given.find((option) => httpOptions.has(option.attributeName()));
  if (!http && needsHttp) {
    throw new UsageError(
      `${needsHttp.long} needs --http; on standard input and output there is one session, with one executor.`,
    );
  }
  if (connect.length === 0 && given.some((option) => option.attributeName() === "approve")) {
    throw new UsageError("--approve needs --connect: it is about calls of the tools of connected servers.");
  }
  if (image !== undefined && executor !== "docker" && executor !== "auto") {
    throw new UsageError("--image needs --executor docker or auto.");
  }
  return executor === undefined ? options : { ...options, executor };
}

function repeatable(flags: string, description: string): Option {
  return new Option(flags, `${description}; repeatable`).default([], "none");
}

function collect(text: string, before: readonly string[]): string[] {
  return [...before, text];
}

function origins(text: string, before: readonly string[]): string[] {
  if (URL.canParse(text) && new URL(text).origin === text) return [...before, text];
  throw new InvalidArgumentError("It must be an origin, such as https://app.example.");
}

function wholeFrom1(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number, at least 1.");
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
}
