import { join } from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor, type ExecutorSubject } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, it } from "vitest";
import { JupyterCodeExecutor, type ServerSettings } from "../src/index.ts";
import { KernelApi } from "./support/kernel-api.ts";
import { sharedServer } from "./support/local-server.ts";
import { TlsProxy } from "./support/tls-proxy.ts";

// As behind a hub: https and wss, a path prefix, its own authority, and a proxy that knows the server's token, so
// that the settings can be dumped.
describe("through a proxy, with https and wss", needs("jupyter2", "openssl"), () => {
  const { address } = sharedServer("jupyter2");
  let proxy: TlsProxy | undefined;
  let server: ServerSettings = { baseUrl: "https://localhost/" };
  beforeAll(async () => {
    const { baseUrl, headers } = await address();
    proxy = await TlsProxy.start(new URL(baseUrl), headers);
    server = { baseUrl: proxy.baseUrl, ca: proxy.ca };
  });
  afterAll(() => proxy?.[Symbol.asyncDispose]());

  const host = join(import.meta.dirname, "fixtures/remote-host.ts");
  const subject: ExecutorSubject = {
    name: "JupyterCodeExecutor",
    create: ({ cleanupTempFiles: _, ...options }) => new JupyterCodeExecutor({ ...options, server }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../src/index.ts") }),
    takesWorkDir: false,
    get hostCommand(): ExecutorSubject["hostCommand"] {
      const settings = JSON.stringify(server);
      return [process.execPath, "--conditions=@fenced/source", "--import", "tsx", host, settings];
    },
    listResources: async () => new KernelApi(await address()).list(),
  };
  testCodeExecutor(
    { describe, it, afterAll },
    subject,
    // Cases that depend on the connection, and files, which travel only over it.
    mechanism("stream", "file streams"),
  );
});
