import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { packageVersion } from "../package-version.ts";
import { UsageError } from "./usage-error.ts";

/** Executors that have a name here; any other is loaded with `--component`. */
const executorNames = ["local", "docker", "jupyter", "aca", "ssh"] as const;
export type ExecutorName = (typeof executorNames)[number];

/** What the command line says. */
export interface CliOptions {
  readonly executor?: ExecutorName;
  readonly component?: string;
  readonly config?: string;
  readonly image?: string;
  readonly workDir?: string;
  readonly timeoutMs?: number;
  readonly allowPackage: readonly string[];
  readonly http: boolean;
  readonly port: number;
  readonly host: string;
  readonly allowHost: readonly string[];
  readonly token?: string;
  readonly maxSessions: number;
  readonly sessionIdle: number;
  readonly maxOutput: number;
}

const help = `
Without --http it speaks MCP on standard input and output. Examples:
  npx -y @fenced/mcp --executor docker --image python:3.13-slim
  npx -y -p @fenced/mcp -p @fenced/executor-jupyter fenced-mcp --executor jupyter --http --port 3000

--executor aca takes the pool's address from ACA_POOL_MANAGEMENT_ENDPOINT, and a token, if there is one, from ACA_TOKEN.
--executor ssh takes the host from --config: {"host":"an alias of ~/.ssh/config"}`;

/**
 * @returns the options, or `undefined` if only help was asked for and given.
 * @throws UsageError if they make no sense.
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
  return check(command.opts<CliOptions>());
}

function createCommand(): Command {
  return new Command("fenced-mcp")
    .description("A Model Context Protocol server that runs code in a Fenced executor.")
    .version(packageVersion())
    .addOption(new Option("--executor <name>", "where the code runs").choices(executorNames))
    .option("--component <file>", "an executor of any kind, as dumpComponent wrote it")
    .option("--allow-package <name>", "a package outside @fenced/ that --component may load; repeatable", collect, [])
    .option("--config <json>", "more settings of --executor, as its package's page names them")
    .option("--image <name>", "the image of --executor docker")
    .option("--work-dir <directory>", "where the code runs; stdio only (default: a temporary directory)")
    .option("--timeout-ms <number>", "milliseconds that a call may take", wholeFrom1)
    .option("--max-output <characters>", "characters of output in a result", wholeFrom1, 30_000)
    .option("--http", "serve streamable HTTP, a session with its own executor for each client", false)
    .option("--port <number>", "the port; 0: any that is free", port, 0)
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .option("--allow-host <name>", "another name by which clients may call the server; repeatable", collect, [])
    .addOption(
      new Option("--token <text>", "what clients send as bearer token (default: a random one)").env("FENCED_MCP_TOKEN"),
    )
    .option("--max-sessions <number>", "sessions at a time", wholeFrom1, 8)
    .option("--session-idle <seconds>", "life of a session without requests", wholeFrom1, 1800)
    .addHelpText("after", help)
    .configureOutput({ writeErr: () => undefined })
    .exitOverride();
}

function check(options: CliOptions): CliOptions {
  const { executor, component, image, config, workDir, timeoutMs, http } = options;
  if (executor === undefined && component === undefined) {
    throw new UsageError(
      "Say where the code should run: --executor docker (a container), aca (Azure), ssh (another host), or without any " +
        "fence, on this machine: jupyter, unless --config names another server, or local; or --component file.json.\n" +
        "All options: fenced-mcp --help",
    );
  }
  if (component !== undefined && [executor, image, config, workDir, timeoutMs].some((value) => value !== undefined)) {
    throw new UsageError("--component says everything about the executor: leave out the other options for one.");
  }
  if (http && workDir !== undefined) {
    throw new UsageError("With --http each session has a temporary directory of its own: leave out --work-dir.");
  }
  if (image !== undefined && executor !== "docker") throw new UsageError("--image is for --executor docker.");
  return options;
}

function collect(text: string, before: readonly string[]): string[] {
  return [...before, text];
}

function wholeFrom1(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1.");
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
}
