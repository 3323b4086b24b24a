#!/usr/bin/env node
import { Console } from "node:console";
import { once } from "node:events";
import { inspect } from "node:util";
import { FencedError, type CodeExecutor, type ComponentModel } from "@fenced/core";
import { executorModel } from "./cli/executor-model.ts";
import { onInterruption } from "./cli/interruption.ts";
import { loadExecutor } from "./cli/load-executor.ts";
import { parseOptions, type CliOptions } from "./cli/parse-options.ts";
import { UsageError } from "./cli/usage-error.ts";
import { startMcpHttpServer } from "./http/start-mcp-http-server.ts";
import { serveStdio } from "./serve-stdio.ts";

// Standard output belongs to the protocol, whatever a package may want to say.
globalThis.console = new Console(process.stderr, process.stderr);
// Whoever read it may be gone: no reason to end without stopping executors.
process.stderr.on("error", () => {});
// What the local executor warns of is said here in other words.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (!("code" in warning) || warning.code !== "FENCED_LOCAL") say(`Warning: ${warning.message}`);
});

try {
  const options = parseOptions(process.argv.slice(2));
  if (options !== undefined) await run(options, onInterruption());
} catch (error) {
  process.exitCode = error instanceof UsageError ? 2 : 1;
  say(error instanceof UsageError || FencedError.isInstance(error) ? error.message : error);
}
// Nothing is left that should keep the program alive, but a client may hold standard input open.
process.exit();

async function run(options: CliOptions, signal: AbortSignal): Promise<void> {
  const model = await executorModel(options);
  // Made first, so that what is missing is seen before a client is there; nothing is started by that.
  const executor = await loadExecutor(model, options);
  if (executor.capabilities.isolation === "none") {
    say(
      "Warning: nothing stands between the code and this machine: it can do all that you can, read your keys as well.",
    );
  }
  const limits = { maxOutputCharacters: options.maxOutput };
  if (options.http) await serveHttp(model, { options, signal, limits });
  else await serveStdio(executor, { ...limits, signal, onError: say });
}

interface Serving {
  readonly options: CliOptions;
  readonly signal: AbortSignal;
  readonly limits: { readonly maxOutputCharacters: number };
}

async function serveHttp(model: ComponentModel, { options, signal, limits }: Serving): Promise<void> {
  const { port, host, token, maxSessions, sessionIdle, allowHost } = options;
  const server = await startMcpHttpServer({
    ...limits,
    port,
    host,
    maxSessions,
    ...(token === undefined ? {} : { token }),
    allowedHosts: allowHost,
    sessionIdleMs: sessionIdle * 1000,
    createExecutor: (): Promise<CodeExecutor> => loadExecutor(model, options),
    onError: say,
  });
  say(`MCP is served at ${server.url}`);
  // A token that was given is known already, and should not stand in a log.
  if (token === undefined) say(`Clients need the header Authorization: Bearer ${server.token}`);
  if (!isLoopback(host)) say("Warning: other machines reach the server, and what they send is not encrypted.");
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

function say(message: unknown): void {
  process.stderr.write(`${typeof message === "string" ? message : inspect(message)}\n`);
}
