import { once } from "node:events";
import type { CodeExecutor } from "@fenced/core";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { boundMessages } from "./bounded-stdio.ts";
import { createMcpServer } from "./executor-server.ts";
import type { McpServerOptions } from "./mcp-server-options.ts";

/** Options of `serveStdio`. */
export interface StdioOptions extends McpServerOptions {
  /** Ends the service. */
  readonly signal: AbortSignal;
  /** Receives errors in what the client sends: invalid JSON, or a message that is too long or has too many values. */
  readonly onError: (error: unknown) => void;
}

/** Serves the client on standard input and output until it disconnects or `signal` is aborted, then stops the executor. */
export async function serveStdio(executor: CodeExecutor, { signal, onError, ...options }: StdioOptions): Promise<void> {
  const server = createMcpServer(executor, options);
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK offers no other way to observe it.
  server.server.onerror = onError;
  const closed = new Promise<void>((resolve) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK offers no other way to observe it.
    server.server.onclose = resolve;
  });
  const transport = new StdioServerTransport();
  boundMessages(transport);
  const done = new AbortController();
  const gone = [
    closed,
    once(process.stdin, "end", { signal: done.signal }),
    once(process.stdin, "close", { signal: done.signal }),
    // A killed client: writes to it fail.
    once(process.stdout, "close", { signal: done.signal }),
    once(signal, "abort", { signal: done.signal }),
  ].map((event) => event.catch(() => {}));
  try {
    // Other servers that it connects to may be slow.
    await Promise.race([server.connect(transport), ...gone]);
    if (!signal.aborted) await Promise.race(gone);
  } finally {
    done.abort();
    await server.close();
    await executor.stop();
  }
}
