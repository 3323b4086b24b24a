import { once } from "node:events";
import { createServer } from "node:http";
import { nodeListener } from "@fenced/core/runtime";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { createE2BHandler, type E2BHandlerOptions, type SandboxTemplate } from "../../src/index.ts";

export const apiKey = `e2b_${"0".repeat(40)}`;
export const otherKey = `e2b_${"1".repeat(40)}`;

/** A server on this machine, with a template that runs programs here, by a supervisor, so that they can have terminals. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  /** Connection options for E2B's client. */
  readonly client: { readonly apiKey: string; readonly apiUrl: string; readonly sandboxUrl: string };
  /** How many executors were created and stopped. */
  readonly executors: { created: number; stopped: number };
}

export async function startServer(options: Partial<E2BHandlerOptions> = {}): Promise<TestServer> {
  const executors = { created: 0, stopped: 0 };
  const create: SandboxTemplate = ({ restore }) => {
    executors.created += 1;
    const executor = new LocalCommandLineCodeExecutor({ warm: {}, restore });
    const dispose = executor[Symbol.asyncDispose].bind(executor);
    executor[Symbol.asyncDispose] = async () => {
      await dispose();
      executors.stopped += 1;
    };
    return executor;
  };
  const handler = createE2BHandler({ templates: { base: create }, apiKeys: [apiKey, otherKey], ...options });
  const server = createServer(nodeListener(handler)).listen(0, "127.0.0.1");
  server.on("upgrade", handler.upgrade);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const url = `http://127.0.0.1:${address.port}`;
  return {
    url,
    client: { apiKey, apiUrl: url, sandboxUrl: url },
    executors,
    [Symbol.asyncDispose]: async () => {
      await handler.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
