import { once } from "node:events";
import { createE2BHandler } from "@fenced/e2b";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { serve } from "@hono/node-server";

/** Starts a service that speaks E2B's protocol, and sets the variables by which programs find it. */
export async function startE2BService(): Promise<AsyncDisposable> {
  const apiKey = "e2b_0123456789abcdef";
  // What a sandbox keeps in its temporary directory goes with it.
  const base = (): LocalCommandLineCodeExecutor =>
    new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network: "open" });
  const handler = createE2BHandler({ templates: { base }, apiKeys: [apiKey] });
  const server = serve({ fetch: handler, port: 0 });
  if (!server.listening) await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const url = `http://localhost:${port}`;
  Object.assign(process.env, { E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: apiKey });
  return {
    [Symbol.asyncDispose]: async () => {
      await handler.close();
      server.close();
    },
  };
}
