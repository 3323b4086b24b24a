#!/usr/bin/env node
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { inspect } from "node:util";
import { directoryStore } from "@fenced/checkpoints";
import { FencedError, InvalidInputError } from "@fenced/core";
import { nodeListener, onInterruption } from "@fenced/core/runtime";
import { type CliOptions, parseOptions, UsageError } from "./cli/parse-options.ts";
import { CliTemplates } from "./cli/templates.ts";
import { createE2BHandler } from "./create-e2b-handler.ts";

const interrupted = onInterruption();
try {
  const options = parseOptions(process.argv.slice(2));
  if (options !== undefined) await run(options);
} catch (error) {
  process.exitCode = error instanceof UsageError || InvalidInputError.isInstance(error) ? 2 : 1;
  say(error instanceof UsageError || FencedError.isInstance(error) ? error.message : error);
}
process.exit();

async function run(options: CliOptions): Promise<void> {
  const given = process.env["FENCED_E2B_API_KEY"] ?? "";
  const key = given === "" ? `e2b_${randomBytes(20).toString("hex")}` : given;
  const { port, host, domain, maxSandboxes, state } = options;
  // Without a directory, paused sandboxes and snapshots last as long as the server.
  await using kept = state === undefined ? await temporaryDirectory() : undefined;
  await using made = new CliTemplates(options, say);
  await using handler = createE2BHandler({
    templates: made.templates,
    apiKeys: [key],
    maxSandboxes,
    ...(state !== undefined && { stateDirectory: state }),
    ...(kept && { checkpoints: directoryStore(kept.path) }),
    ...(domain !== undefined && { domain }),
    onError: say,
  });
  const server = createServer(nodeListener(handler)).listen(port, host);
  server.on("upgrade", handler.upgrade);
  // Uploads can take as long as they like.
  server.requestTimeout = 0;
  // A client that sends its next request just when the server closes an idle connection sees an error.
  server.keepAliveTimeout = 120_000;
  await once(server, "listening").catch((error: unknown) => {
    throw new UsageError(`The server cannot listen on port ${port} of ${host}: ${reasonOf(error)}.`);
  });
  const address = server.address();
  const listening = typeof address === "object" && address !== null ? address.port : port;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${listening}`;
  process.stdout.write(`${url}\n`);
  // A key that the user chose is known, and should not be in a log.
  if (given === "") process.stdout.write(`E2B_API_KEY=${key}\n`);
  if (!["localhost", "::1"].includes(host) && !host.startsWith("127.")) {
    say("Warning: the server accepts connections from other machines, without encryption.");
  }
  const checking = made.check(say, interrupted);
  if (!interrupted.aborted) await once(interrupted, "abort");
  await checking;
  server.close();
  await handler.close();
  server.closeAllConnections();
}

async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const created = await mkdtemp(path.join(tmpdir(), "fenced-e2b-"));
  return { path: created, [Symbol.asyncDispose]: () => rm(created, { recursive: true, force: true }) };
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE") return "another program uses it; choose another --port";
  if (code === "EACCES") return "that needs more rights; choose a --port from 1024";
  return `${error instanceof Error ? error.message : String(error)}; choose another --host`;
}

function say(message: unknown): void {
  process.stderr.write(`${typeof message === "string" ? message : inspect(message)}\n`);
}
