import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { programArguments } from "@fenced/test-support/program-arguments";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onTestFinished } from "vitest";
import { type McpHttpServer, type McpHttpServerOptions, startMcpHttpServer } from "../../src/index.ts";

process.removeAllListeners("warning");

/** Registers a clean-up for the end of the test, or of another scope. */
type Finally = (clean: () => Promise<void>) => void;

/** The arguments with which Node runs the command line on the sources of the workspace. */
export const nodeArguments: readonly string[] = programArguments(new URL("../../src/cli.ts", import.meta.url));

interface StdioClientOptions {
  readonly atEnd?: Finally;
  /** Variables besides the few that the SDK passes on. */
  readonly env?: Record<string, string>;
}

/** A client of the command line, over standard input and output. */
export async function connectStdio(
  args: readonly string[],
  { atEnd = onTestFinished, env = {} }: StdioClientOptions = {},
): Promise<Client> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...nodeArguments, ...args],
    env,
    stderr: "ignore",
  });
  const client = newClient(atEnd);
  await client.connect(transport);
  return client;
}

/** A server over HTTP whose sessions run code on this host. */
export async function startHttp(
  options: Partial<McpHttpServerOptions> = {},
  atEnd: Finally = onTestFinished,
): Promise<McpHttpServer> {
  const createExecutor = () => new LocalCommandLineCodeExecutor();
  const server = await startMcpHttpServer({ createExecutor, ...options });
  atEnd(() => server.close());
  return server;
}

/** A client of a server over HTTP, in its own session. */
export async function connectHttp(
  { url, token }: Pick<McpHttpServer, "url" | "token">,
  atEnd: Finally = onTestFinished,
  client: Client = new Client({ name: "test", version: "1" }),
): Promise<HttpClient> {
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
  atEnd(() => client.close());
  await client.connect(transport);
  return { client, transport };
}

export interface HttpClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

function newClient(atEnd: Finally): Client {
  const client = new Client({ name: "test", version: "1" });
  atEnd(() => client.close());
  return client;
}

/** The running command line. */
export interface StartedCli {
  readonly child: ChildProcessWithoutNullStreams;
  readonly outcome: Promise<{ exitCode: number | null; stdout: string; stderr: string }>;
  /** Waits until standard error matches the pattern. */
  readonly told: (pattern: RegExp) => Promise<RegExpExecArray>;
}

/** Starts the command line as a host does. */
export function startCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): StartedCli {
  const { FENCED_MCP_TOKEN: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [...nodeArguments, ...args], { env: { ...inherited, ...env } });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const outcome = once(child, "close").then(([exitCode]: (number | null)[]) => ({
    exitCode: exitCode ?? null,
    stdout,
    stderr,
  }));
  const told = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const found = pattern.exec(stderr);
      if (found !== null) return found;
      await once(child.stderr, "data");
    }
  };
  return { child, outcome, told };
}
