#!/usr/bin/env node
import { Console } from "node:console";
import { once } from "node:events";
import { inspect } from "node:util";
import { type CodeExecutor, FencedError, InvalidInputError } from "@fenced/core";
import { onInterruption } from "@fenced/core/runtime";
import { executorModel } from "./cli/executor-model.ts";
import { loadExecutor } from "./cli/load-executor.ts";
import { openStrongestFence, type StrongestFence } from "./cli/open-fence.ts";
import { onCommandLine } from "./cli/own-words.ts";
import { parseOptions, type CliOptions } from "./cli/parse-options.ts";
import { sessionExecutors } from "./cli/session-executors.ts";
import { UsageError } from "./cli/usage-error.ts";
import { ConnectedServers } from "./connect/connected-servers.ts";
import { assertHostFunctions } from "./executor-server.ts";
import { startMcpHttpServer } from "./http/start-mcp-http-server.ts";
import type { McpServerOptions } from "./mcp-server-options.ts";
import { serveStdio } from "./serve-stdio.ts";

// Standard output is reserved for the protocol: packages must not log to it.
globalThis.console = new Console(process.stderr, process.stderr);
// Its reader may be gone; still stop executors before exiting.
process.stderr.on("error", () => {});
// This program words the local executor's warning itself.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (!("code" in warning) || warning.code !== "FENCED_LOCAL") say(`Warning: ${warning.message}`);
});

let interrupted: AbortSignal | undefined;
try {
  const options = parseOptions(process.argv.slice(2));
  interrupted = onInterruption();
  if (options !== undefined) await run(options, interrupted);
} catch (error) {
  // The exit code already shows it then.
  if (interrupted?.aborted === true) process.exit();
  process.exitCode = error instanceof UsageError || InvalidInputError.isInstance(error) ? 2 : 1;
  if (error instanceof UsageError) say(error.message);
  else say(FencedError.isInstance(error) ? onCommandLine(error) : error);
}
// Nothing should keep the program alive now, but a client may hold standard input open.
process.exit();

async function run(options: CliOptions, signal: AbortSignal): Promise<void> {
  const { create, executor } = await executorOf(options, signal);
  if (executor.capabilities.isolation === "none") {
    say(
      "Warning: code runs on this machine without a sandbox. It can do everything that you can, including reading your keys.",
    );
  }
  const { connect, approve: approveCalls } = options;
  const limits: McpServerOptions = { maxOutputCharacters: options.maxOutput, connect, approveCalls };
  if (!options.http) return serveStdio(executor, { ...limits, signal, onError: say });
  if (connect.length > 0) assertHostFunctions(executor);
  await executor.stop();
  await serveHttp(create, { options, signal, limits });
}

/** The requested executor, and how to create more of them. */
async function executorOf(
  options: CliOptions,
  signal: AbortSignal,
): Promise<Pick<StrongestFence, "create" | "executor">> {
  if (options.executor === "auto") {
    const fence = await openStrongestFence(options, signal);
    say(fence.reason);
    return fence;
  }
  const model = await executorModel(options);
  // Created first, without starting it, so that problems show before a client connects.
  const create = (): Promise<CodeExecutor> => loadExecutor(model, options);
  return { create, executor: await create() };
}

async function serveHttp(
  create: StrongestFence["create"],
  {
    options,
    signal,
    limits,
  }: { readonly options: CliOptions; readonly signal: AbortSignal; readonly limits: McpServerOptions },
): Promise<void> {
  const { port, host, token, maxSessions, sessionIdleMs, allowHost, allowOrigin, connect } = options;
  // Reports problems before a client connects; each session opens its own connections.
  if (connect.length > 0) await checkServers(connect, signal);
  await using executors = sessionExecutors(create, options, say);
  const server = await startMcpHttpServer({
    ...limits,
    port,
    host,
    maxSessions,
    ...(token === undefined ? {} : { token }),
    allowedHosts: allowHost,
    allowedOrigins: allowOrigin,
    sessionIdleMs,
    createExecutor: (start) => executors.create(start.signal),
    onError: say,
  });
  say(`MCP is served at ${server.url}`);
  // A token that the user chose is known, and should not be in a log.
  if (token === undefined) say(`Clients need the header Authorization: Bearer ${server.token}`);
  if (!isLoopback(host)) say("Warning: the server accepts connections from other machines, without encryption.");
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
}

async function checkServers(targets: CliOptions["connect"], signal: AbortSignal): Promise<void> {
  const connected = await ConnectedServers.open(targets, { approveCalls: "none", timeoutMs: 30_000, signal });
  await connected.close();
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

function say(message: unknown): void {
  process.stderr.write(`${typeof message === "string" ? message : inspect(message)}\n`);
}
